"""Exports of labelling tools -> labels, texts and truth; what is left out is counted, and what is in doubt is asked."""

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from crowdwise import aggregate, formats
from crowdwise.exceptions import BusyError, CrowdWarning, DataError, LabelError

FILES = Path(__file__).parent / "files"


def labels_of(name, **options):
    return dict(formats.read(FILES / name, **options).labels)


@pytest.fixture
def saved(tmp_path):
    """Writes records as JSON, or bytes as they are, and gives the path."""

    def save(content, name="export.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return save


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ([{"id": "", "q": "x", "annotator": "1", "annotation_id": 5}], None),
        ({"": {"ann": "x"}}, "peerannot"),
        ({"": {"t1": "x"}}, "alttest"),
        ([{"id": "t", "annotators": ["ann", ""], "labels": ["x", "y"]}], None),
    ],
)
def test_a_label_without_its_example_or_annotator_is_refused(saved, content, format):
    with pytest.raises(LabelError, match="every label needs its example"):
        formats.read(saved(content), format=format)


def choosing(*answers):
    """A task of Label Studio per tuple of answers, each a list of choices to the question of the same place."""
    return [
        {
            "id": number,
            "data": {"text": f"text {number}"},
            "annotations": [
                {
                    "id": f"{number}-{who}",
                    "completed_by": who,
                    "result": [
                        {"from_name": f"q{place}", "to_name": "text", "type": "choices", "value": {"choices": choices}}
                        for place, choices in enumerate(given)
                    ],
                }
                for who, given in enumerate(given_by_annotators)
            ],
        }
        for number, given_by_annotators in enumerate(answers)
    ]


# ---------------------------------------------------------------------- Label Studio


def test_a_class_named_like_several_choices_is_no_choice_of_several(saved):
    mixed = choosing([[["a", "b"]], [["a|b"]]], [[["a"]], [["b"]]])
    with pytest.raises(LabelError, match=r"'a\|b' is the name of a class and also .* Rename the class"):
        formats.read(saved(mixed))
    alone = formats.read(saved(choosing([[["a|b"]], [["a"]]])))
    assert alone.labels.classes.tolist() == ["a", "a|b"]
    assert not [note for note in alone.notes if "several choices" in note]
    of_another_question = choosing([[["a", "b"], ["a|b"]], [["a"], ["c"]]])
    assert formats.read(saved(of_another_question), question="q1").labels.classes.tolist() == ["a|b", "c"]
    listed = {"t1": {"ann": ["a", "b"], "bob": "a|b"}}
    with pytest.raises(LabelError, match="Rename the class"):
        formats.read(saved(listed), format="peerannot")


def test_a_class_spelt_like_several_choices_is_none_where_spellings_are_made_alike(saved):
    mixed = choosing([[["A", "B"]], [["a|b"]]], [[["A"]], [["B"]]])
    with pytest.warns(CrowdWarning, match="2 classes differ only in"):
        assert formats.read(saved(mixed)).labels.classes.tolist() == ["A", "A|B", "B", "a|b"]
    with pytest.raises(LabelError, match="Rename the class"):
        formats.read(saved(mixed), strip=True)


@pytest.mark.parametrize("name", ["label_studio.json", "argilla_nested.json"])
def test_texts_that_are_no_record_are_named(name, saved):
    records = json.loads((FILES / name).read_text())
    records.append({**records[-1], "data" if "data" in records[-1] else "fields": 1.5})
    with pytest.raises(DataError, match=r"'(data|fields)' must be a record"):
        formats.read(saved(records))


def test_several_choices_of_every_tool_are_counted(tmp_path):
    tasks = [
        {"text": "t", "options": [], "accept": accept, "answer": "accept", "_input_hash": 1, "_annotator_id": who}
        for who, accept in (("ann", ["a", "b"]), ("bob", ["a"]))
    ]
    path = tmp_path / "prodigy.jsonl"
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    assert any(note.startswith("1 answer is several choices at once") for note in formats.read(path).notes)


def test_an_answer_without_a_label_takes_no_other_answer_back(saved):
    rows = [(1, "ann", "yes"), (1, "ann", ""), (1, "bob", "no")]
    log = {"eval": {}, "samples": [{"id": task, "scores": {who: {"value": value}}} for task, who, value in rows]}
    file = formats.read(saved(log))
    assert dict(file.labels) == {1: {"ann": "yes", "bob": "no"}}
    assert any("rows without a label (1 empty)" in note for note in file.notes)


def test_a_class_named_like_several_choices_is_written_as_the_one_that_it_is(saved, tmp_path):
    path = saved(choosing([[["a|b"]], [["a|b"]]], [[["b", "a", "c"]], [["c", "a", "b"]]]))
    consensus = aggregate(formats.read(path).labels).consensus
    formats.write(consensus, tmp_path / "tasks.json", format="label-studio", tasks=path)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    values = [task["predictions"][0]["result"][0]["value"] for task in tasks]
    assert values == [{"choices": ["a|b"]}, {"choices": ["a", "b", "c"]}]


def test_label_studio_counts_the_newest_answer_of_every_annotator_and_leaves_out_what_is_none():
    file = formats.read(FILES / "label_studio.json")
    assert file.format == "Label Studio"
    assert dict(file.labels) == {
        1: {"ann@example.org": "Neutral", "bob@example.org": "Positive", "model:m0": "Positive"},
        2: {"5": "Negative|Neutral", "ann@example.org": "Negative"},
    }
    assert file.texts == {1: "A fine film.", 2: "<script>alert(1)</script>"}
    assert file.truth == {2: "Negative"}
    (left_out,) = [note for note in file.notes if note.startswith("left out")]
    for part in (
        "drafts (1)",
        "cancelled answers (1)",
        "rejected answers (1)",
        "repeated annotations (1)",
        "results that are neither a class nor a rating (spans, boxes, texts) (1)",
        "answers about a part of an example (1)",
        "predictions with only an id in the file (1)",
        "earlier answers of the same annotator to the same example (1)",
    ):
        assert part in left_out
    assert "the predictions of 'model:m0' count as a separate annotator." in file.notes
    assert any("started from a model's prediction" in note for note in file.notes)
    assert any("'Negative|Neutral'" in note for note in file.notes)


def test_label_studio_with_several_questions_asks_which():
    with pytest.raises(LabelError, match=r"has 2 questions: sentiment, stars."):
        formats.read(FILES / "label_studio_questions.json")
    assert labels_of("label_studio_questions.json", question="stars") == {1: {1: 2, 2: 3}, 2: {1: 3, 2: 4}}
    assert (
        formats.read(FILES / "label_studio_questions.json", question="stars", scale="interval").labels.classes is None
    )
    with pytest.raises(LabelError, match="no question 'x'; its questions"):
        formats.read(FILES / "label_studio_questions.json", question="x")


def test_label_studio_reads_old_exports_and_other_types_of_values(saved):
    def task(number, value, kind, **more):
        result = [{"from_name": "q", "to_name": "text", "type": kind, "value": value}]
        return {"id": number, "data": {}, "completions": [{"id": number, "completed_by": 1, "result": result, **more}]}

    path = saved(
        [
            task(1, {"taxonomy": [["a", "b"], ["c"]]}, "taxonomy"),
            task(2, {"selected": "left"}, "pairwise"),
            task(3, {"number": 4}, "number"),
            task(4, {"choices": ["x"]}, "choices", skipped=True),
            task(5, {"choices": ["x"]}, "choices", reviews=[{"accepted": True}, {"accepted": False}]),
        ]
    )
    assert dict(formats.read(path).labels) == {1: {1: "a/b|c"}, 2: {1: "left"}, 3: {1: "4"}}


def test_flat_exports_of_label_studio_are_read():
    expected = {1: {3: "Positive", 4: "Negative|Neutral"}, 2: {3: "Negative"}}
    assert labels_of("label_studio_min.json") == labels_of("label_studio_min.json", format="label-studio") == expected


def test_flat_exports_of_label_studio_may_have_their_columns_in_the_order_of_names(saved):
    head = b"annotation_id,annotator,created_at,id,lead_time,sentiment,source,text,updated_at\n"
    path = saved(head + b"1,3,a,7,1,good,web,One.,b\n2,4,a,7,1,bad,web,One.,b\n3,3,a,8,1,good,web,Two.,b\n", "ls.csv")
    file = formats.read(path)
    assert dict(file.labels) == {7: {3: "good", 4: "bad"}, 8: {3: "good"}}
    assert file.texts == {7: "One.", 8: "Two."}
    assert "columns: id -> example, annotator -> annotator, sentiment -> label" in file.notes
    assert set(formats.read(path, question="source").labels.classes) == {"web"}
    alone = saved(
        head + b"1,3,a,7,1,good,web,One.,b\n", "alone.csv"
    )  # nothing tells what is shown from what is answered
    with pytest.raises(LabelError, match="has 2 questions: sentiment, source"):
        formats.read(alone)
    assert dict(formats.read(alone, question="sentiment").labels) == {7: {3: "good"}}


# ---------------------------------------------------------------------- Prodigy


def test_prodigy_choices_are_labels_and_reviews_are_truth():
    file = formats.read(FILES / "prodigy.jsonl")
    assert dict(file.labels) == {
        -91551573: {"news-ann": "pos", "news-böb": "neg"},
        48213: {"news-ann": "pos"},
        777: {"2024-02-06_10-17-19": "pos"},
    }
    assert file.truth == {48213: "neg"}
    assert file.texts[777] == "A long film."
    assert any("ignored tasks (1)" in note and "tasks without a chosen option (1)" in note for note in file.notes)
    assert any("at which Prodigy was started" in note for note in file.notes)


def test_prodigy_binary_answers_are_those_to_the_label(saved):
    assert labels_of("prodigy_binary.jsonl") == {1: {"d-ann": "accept", "d-bob": "reject"}}
    lines = (FILES / "prodigy_binary.jsonl").read_text()
    path = saved((lines + lines.replace("FILM", "BOOK")).encode(), "two.jsonl")
    with pytest.raises(LabelError, match="has 2 questions: FILM, BOOK"):
        formats.read(path)
    assert dict(formats.read(path, question="BOOK").labels) == {1: {"d-ann": "accept", "d-bob": "reject"}}


# ---------------------------------------------------------------------- Argilla


def test_argilla_counts_submitted_responses_and_takes_suggestions_for_an_annotator():
    file = formats.read(FILES / "argilla_flat.json")
    assert dict(file.labels) == {
        "r1": {"model:gpt-4o": "pos", "uuid-1": "pos", "uuid-3": "pos"},
        "r2": {"uuid-1": "neg"},
    }
    assert file.texts == {"r1": "A fine film.", "r2": "A dull film."}
    assert "left out: draft responses (1), discarded responses (1)" in file.notes


def test_nested_records_of_argilla_come_with_a_word_about_drafts():
    with pytest.raises(LabelError, match="has 2 questions: label, tags"):
        formats.read(FILES / "argilla_nested.json")
    file = formats.read(FILES / "argilla_nested.json", question="label")
    assert dict(file.labels) == {"r1": {"model:gpt-4o": "pos", "uuid-1": "pos", "uuid-2": "neg"}}
    assert any("drafts and discarded ones count too" in note for note in file.notes)
    assert labels_of("argilla_nested.json", question="tags") == {"r1": {"uuid-1": "a|b"}}


# ---------------------------------------------------------------------- doccano


def test_doccano_has_a_file_per_annotator(tmp_path):
    expected = {12: {"ann": "positive", "bob": "negative"}, 13: {"bob": "negative|odd"}}
    file = formats.read(FILES / "doccano.zip")
    assert dict(file.labels) == expected
    assert file.texts == {12: "A fine film.", 13: "A dull film."}
    assert "left out: examples that an annotator did not label (1)" in file.notes
    shutil.unpack_archive(FILES / "doccano.zip", tmp_path / "folder")
    assert dict(formats.read(tmp_path / "folder").labels) == expected
    assert dict(formats.read(tmp_path / "folder" / "ann.jsonl").labels) == {12: {"ann": "positive"}}
    (tmp_path / "folder" / "cy.csv").write_text("id,text,label,Comments\n13,A dull film.,odd#negative,\n")
    assert dict(formats.read(tmp_path / "folder").labels)[13] == {"bob": "negative|odd", "cy": "negative|odd"}


def test_classes_of_doccano_may_have_the_sign_that_joins_them_in_csv(saved, tmp_path):
    assert dict(formats.read(saved({"id": 1, "text": "a", "label": ["C#"]}, "ann.jsonl")).labels) == {1: {"ann": "C#"}}
    line = {"id": 1, "text": "a", "label": "A#B", "Comments": []}
    assert dict(formats.read(saved(line, "ann.jsonl"), format="doccano").labels) == {1: {"ann": "A#B"}}
    rows = "id,text,label,Comments\n1,a,C#,\n2,b,C,\n3,c,Java,\n4,d,Java#C#,\n5,e,C##Java,\n6,f,C#Java,\n7,g,#1,\n"
    found = formats.read(saved(rows.encode(), "ann.csv"), format="doccano").labels
    given = [labels["ann"] for _, labels in found]
    assert given == ["C#", "C", "Java", "C#|Java", "C#|Java", "C|Java", "#1"]
    for cell in ("A#B", "C#A", "C#Java#" + "A#" * 1000 + "B"):
        path = saved(f"{rows}8,h,{cell},\n".encode(), "ann.csv")
        with pytest.raises(LabelError, match=r"ann\.csv, row 8 .*may be"):
            formats.read(path, format="doccano")
    path = saved(b"id,text,label\n1,a,A#B\n", "ann.csv")
    assert dict(formats.read(path, format="doccano", classes=["A#B", "C"]).labels) == {1: {"ann": "A#B"}}


def test_doccano_without_annotators_or_with_spans_is_refused(saved, tmp_path):
    line = {"id": 1, "text": "a", "label": ["x"]}
    with pytest.raises(LabelError, match="does not say who labelled what"):
        formats.read(saved(line, "all.jsonl"), format="doccano")
    with pytest.raises(LabelError, match="holds spans"):
        formats.read(saved({**line, "label": [[0, 1, "x"]]}, "ann.jsonl"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="it contains no annotator"):
        formats.read(tmp_path / "empty")
    archive = (FILES / "doccano.zip").read_bytes()
    with pytest.raises(DataError, match="the archive is cut off"):
        formats.read(saved(archive[:-30], "cut.zip"))


def test_an_archive_that_would_swell_is_refused_before_it_is_unpacked(set_constants):
    set_constants("crowdwise.tables._source", _LARGE=10)
    set_constants("crowdwise.tables._source", _LARGEST_RATIO=0)
    with pytest.raises(DataError, match="more than any export has"):
        formats.read(FILES / "doccano.zip")


def test_an_archive_that_changes_while_it_is_read_is_refused(saved, monkeypatch):
    path = saved((FILES / "doccano.zip").read_bytes(), "export.zip")
    read_member = zipfile.ZipFile.read

    def changed(archive, *arguments):
        with open(path, "ab") as file:
            file.write(b"more")
        return read_member(archive, *arguments)

    monkeypatch.setattr(zipfile.ZipFile, "read", changed)
    with pytest.raises(BusyError, match="changed while it was read"):
        formats.read(path)


def test_an_archive_that_is_cut_off_while_it_is_read_is_refused_as_changed(saved, monkeypatch):
    path = saved((FILES / "doccano.zip").read_bytes(), "export.zip")

    def cut(archive, *arguments):
        path.write_bytes(b"PK")
        raise zipfile.BadZipFile("cut")

    monkeypatch.setattr(zipfile.ZipFile, "read", cut)
    with pytest.raises(BusyError, match="changed while it was read"):
        formats.read(path)


# ---------------------------------------------------------------------- marketplaces


def test_mechanical_turk_takes_hits_with_the_same_input_for_one_example():
    file = formats.read(FILES / "mturk.csv")
    assert dict(file.labels) == {
        "3HIT1": {"A1WORKER": "Positive", "A2WORKER": "Negative", "A3WORKER": "Positive"},
        "3HIT3": {"A1WORKER": "Negative"},
    }
    assert file.texts["3HIT3"] == 'A dull film, "sadly".'
    assert "left out: answers of rejected assignments (2)" in file.notes
    assert any("with the same input as another" in note for note in file.notes)


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [("tone", "glad", "sad"), ("topic", "film", "book"), ("parts", "plot", "music|plot")],
)
def test_boxes_and_json_of_mechanical_turk_are_questions(question, first, second):
    with pytest.raises(LabelError, match="has 3 questions: tone, topic, parts"):
        formats.read(FILES / "mturk_boxes.csv")
    assert labels_of("mturk_boxes.csv", question=question) == {"t1": {"A1WORKER": first, "A2WORKER": second}}


def test_columns_of_marketplaces_can_be_named_as_in_any_table():
    labels = labels_of("mturk_boxes.csv", example="HITId", label="Answer.tone")
    assert labels == {"3HIT1": {"A1WORKER": "glad"}, "3HIT2": {"A2WORKER": "sad"}}
    assert labels_of("toloka.tsv", label="OUTPUT:result") == labels_of("toloka.tsv", question="result")


def test_broken_json_in_a_cell_of_mechanical_turk_is_told_with_its_row(saved):
    text = (FILES / "mturk_boxes.csv").read_text().replace('[{""topic"":{""label"":""book""}', "[{", 1)
    with pytest.raises(DataError, match="row 2 after the header:"):
        formats.read(saved(text.encode(), "batch.csv"), question="tone")


def test_toloka_leaves_out_what_was_not_accepted_and_knows_golden_answers():
    file = formats.read(FILES / "toloka.tsv")
    assert dict(file.labels) == {"t1": {"w1": "cat", "w2": "dog"}, "t2": {"w1": "dog"}}
    assert file.truth == {"t1": "cat"}
    assert "left out: answers of rejected assignments (1)" in file.notes


def test_toloka_without_task_ids_takes_the_inputs_for_examples(saved):
    rows = "INPUT:image\tOUTPUT:result\tASSIGNMENT:worker_id\na.jpg\tcat\tw1\na.jpg\tdog\tw2\n"
    assert dict(formats.read(saved(rows.encode(), "results.tsv")).labels) == {"a.jpg": {"w1": "cat", "w2": "dog"}}


# ---------------------------------------------------------------------- other layouts


def test_two_levels_of_json_are_never_guessed():
    with pytest.raises(LabelError, match="--format peerannot if it is"):
        formats.read(FILES / "peerannot.json")
    assert labels_of("peerannot.json", format="peerannot") == {0: {"w1": 1, "w2": 0}, 1: {"w1": 1}}
    assert labels_of("peerannot.json", format="alttest") == {"w1": {0: 1, 1: 1}, "w2": {0: 0}}


@pytest.mark.parametrize("end", [b"", b"\n", b"\n \n"])
def test_a_long_document_on_one_line_is_no_line_of_json_lines(saved, end):
    document = {str(i): {"w1": i % 2, "w2": 0} for i in range(5_000)}
    path = saved(json.dumps(document).encode() + end)
    assert path.stat().st_size > 2**16
    assert formats.read(path, format="peerannot").labels.n_labels == 10_000
    with pytest.raises(LabelError, match="--format peerannot"):
        formats.read(path)
    long = {"task": 1, "worker": "ann", "label": "yes", "text": "x" * 2**17}
    lines = "\n".join(json.dumps({**long, "worker": worker}) for worker in ("ann", "bob"))
    assert dict(formats.read(saved(lines.encode() + end)).labels) == {1: {"ann": "yes", "bob": "yes"}}


def test_rows_with_lists_are_read_as_lists_texts_or_records():
    assert labels_of("crowd_kit.csv") == {"t1": {"w1": "cat", "w2": "dog"}, "t2": {"w1": "dog"}}
    assert labels_of("hugging_face.jsonl") == {"h1": {"a1": 1, "a2": 0}, "h2": {"a2": 0, "a3": 0}}
    assert labels_of("lewidi_2023.json") == {1: {"Ann1": 0, "Ann2": 0, "Ann3": 1}, 2: {"Ann1": 1}}
    assert labels_of("lewidi_2025.json") == {1: {"Ann1": 0, "Ann2": 1}, 2: {"Ann1": 1}}


def test_a_label_for_all_beside_the_lists_is_not_taken_for_them(saved):
    row = {"text": "one", "label": 1, "worker_ids": ["a", "b"], "annotations": [1, 0]}
    file = formats.read(saved([row]))
    assert dict(file.labels) == {0: {"a": 1, "b": 0}}
    assert "columns: number of the row -> example, worker_ids -> annotator, annotations -> label" in file.notes
    with pytest.raises(LabelError, match="'item' and 'task' may both"):
        formats.read(saved([{"item": 1, "task": 2, **row}]))


def test_records_as_labels_of_one_annotator_are_no_list_of_annotators(saved):
    content = 'task,worker,label\n1,ann,"{""a"": 1}"\n'
    assert dict(formats.read(saved(content.encode(), "labels.csv")).labels) == {1: {"ann": '{"a": 1}'}}


def test_lists_in_parquet_are_read(tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": ["h1"], "annotators": [["a1", "a2"]], "labels": [[1, 0]]})
    frame.write_parquet(tmp_path / "rows.parquet")
    assert dict(formats.read(tmp_path / "rows.parquet").labels) == {"h1": {"a1": 1, "a2": 0}}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": 1, "annotators": ["a"], "labels": [1, 2]}, "must be of one length; got 1 and 2"),
        ({"id": 1, "annotators": [""], "labels": [1]}, "every label needs its example and its annotator"),
    ],
)
def test_lists_that_do_not_fit_are_refused_with_their_record(saved, record, message):
    with pytest.raises(DataError, match=rf"record 1: .*{message}"):
        formats.read(saved([record]))


def test_labels_without_annotators_are_refused(saved):
    with pytest.raises(LabelError, match="no column lists whose they are"):
        formats.read(saved([{"id": 1, "labels": [1, 0]}]), format="hugging-face")


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.iterdir() if path.suffix != ".zip"))
def test_every_file_may_be_compressed(name, tmp_path):
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress((FILES / name).read_bytes()))

    def outcome(path):
        try:
            return formats.read(path).labels
        except LabelError as error:
            return str(error).replace(str(path), "")

    assert outcome(packed) == outcome(FILES / name)


def test_a_format_that_is_not_known_or_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="format must be one of"):
        formats.read(FILES / "mturk.csv", format="excel")
    with pytest.raises(DataError, match="is a table, and JSON"):
        formats.read(FILES / "mturk.csv", format="prodigy")
    with pytest.raises(DataError, match="is not a table of toloka"):
        formats.read(FILES / "crowd_kit.csv", format="toloka")


# ---------------------------------------------------------------------- logs of evaluations


def test_scorers_of_inspect_are_annotators_and_epochs_examples():
    file = formats.read(FILES / "inspect.json")
    assert file.format == "Inspect"
    assert dict(file.labels) == {
        "a": {"grader_a": "C", "grader_b": "I"},
        "a (epoch 2)": {"grader_a": "I", "grader_b": "I"},
        "b": {"grader_a": "C"},
    }
    assert file.texts["b"] == "Question b?"
    assert "every epoch counts as a separate example, as the model answered again." in file.notes
    assert "left out: rows without a label (1 empty)" in file.notes


def test_values_of_several_parts_are_questions_of_inspect(saved):
    scores = {"judge": {"value": {"tone": 4, "facts": 2}}}
    log = {"eval": {}, "samples": [{"id": 1, "epoch": 1, "input": [], "scores": scores}]}
    with pytest.raises(LabelError, match="2 questions: tone, facts"):
        formats.read(saved(log))
    assert dict(formats.read(saved(log), question="facts").labels) == {1: {"judge": 2}}


def test_runs_of_a_judge_share_a_vote_and_the_newest_answer_of_a_person_counts():
    with pytest.raises(LabelError, match="2 questions: helpful, tone"):
        formats.read(FILES / "langfuse.jsonl")
    file = formats.read(FILES / "langfuse.jsonl", question="helpful")
    assert (file.format, file.question) == ("Langfuse", "helpful")
    assert dict(file.labels) == {"t1": {"ann": "yes", "gpt": "yes", "gpt (run 2)": "no"}, "t2": {"gpt": "no"}}
    assert file.labels.groups.tolist() == [None, "gpt", "gpt"]
    assert "runs of one judge share a vote: gpt" in file.notes
    left_out = "earlier answers of the same annotator to the same example (1), scores without a value (1)"
    assert any(set(left_out.split(", ")) <= set(note.removeprefix("left out: ").split(", ")) for note in file.notes)


def test_scores_of_langfuse_as_a_table_are_the_same(tmp_path):
    records = [json.loads(line) for line in (FILES / "langfuse.jsonl").read_text().splitlines()]
    names = list(dict.fromkeys(name for record in records for name in record))
    rows = [",".join("" if record.get(name) is None else str(record[name]) for name in names) for record in records]
    (tmp_path / "scores.csv").write_text("\n".join([",".join(names), *rows]))
    file = formats.read(tmp_path / "scores.csv", question="helpful")
    assert file.labels == formats.read(FILES / "langfuse.jsonl", question="helpful").labels


def test_assessments_of_mlflow_have_truths_and_those_that_were_overridden_are_left_out():
    file = formats.read(FILES / "mlflow.json")
    assert file.format == "MLflow"
    assert dict(file.labels) == {"tr-1": {"ann": "true", "gpt": "true", "llama": "false"}, "tr-2": {"gpt": "false"}}
    assert file.truth == {"tr-2": "false"}
    assert "left out: answers that were overridden (1)" in file.notes


def test_annotations_of_phoenix_are_labels_or_scores(tmp_path):
    file = formats.read(FILES / "phoenix.json")
    assert file.format == "Phoenix"
    assert dict(file.labels) == {"s1": {"ann": "bad", "judge-1": "ok"}, "s2": {"code": "ok", "judge-1": "0.5"}}
    header = "span_id,annotation_name,annotator_kind,identifier,result.label,result.score"
    (tmp_path / "flat.csv").write_text(f"{header}\ns1,tone,LLM,j,ok,1\ns1,tone,HUMAN,ann,bad,0\n")
    assert dict(formats.read(tmp_path / "flat.csv").labels) == {"s1": {"ann": "bad", "j": "ok"}}


def test_repeated_labels_of_a_table_are_runs_if_asked_to(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text("pair,judge,order,winner\np1,gpt,AB,A\np1,gpt,BA,B\np1,llama,AB,A\np2,gpt,AB,B\np2,gpt,BA,B\n")
    with pytest.raises(LabelError):
        formats.read(path, example="pair")
    labels = formats.read(path, example="pair", on_duplicate="runs").labels
    assert dict(labels)["p2"] == {"gpt": "B", "gpt (run 2)": "B"}
    assert labels.groups.tolist() == ["gpt", "gpt", None]
