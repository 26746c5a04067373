"""Plain tables, long and wide -> labels; which columns are taken, and what is asked in doubt."""

import subprocess
import sys

import numpy as np
import pytest

import crowdwise
from crowdwise import CrowdLabels, formats
from crowdwise.exceptions import CrowdWarning, DataError, LabelError
from crowdwise.formats import _names, _plain
from crowdwise.formats._answers import Answers
from crowdwise.formats._names import candidates


@pytest.fixture
def saved(tmp_path):
    """Writes content to a file and gives its path."""

    def save(content, name="labels.csv"):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return save


@pytest.mark.parametrize(
    "header",
    [
        "task,worker,label",
        "Example,Annotator,Label",
        "item_id,rater_id,rating",
        "ItemID,RaterID,Answer",
        "question,user,response",
        "id,judge,class",
        "TaskId,Worker Id,value",
        "!amt_annotation_ids,!amt_worker_ids,orig_id,response",
    ],
)
def test_columns_are_found_by_their_usual_names_in_any_spelling(saved, header):
    names = header.split(",")
    extra = len(names) == 4
    rows = "".join(f"{'x,ann,a' if extra else 'a,ann'},yes\n{'y,bob,a' if extra else 'a,bob'},no\n" for _ in range(1))
    file = formats.read(saved(f"{header}\n{rows}"))
    assert list(file.labels) == [("a", {"ann": "yes", "bob": "no"})]
    roles = (names[2], names[1], names[3]) if extra else tuple(names)
    said = ", ".join(f"{name} -> {role}" for name, role in zip(roles, ("example", "annotator", "label"), strict=True))
    assert file.notes[0] == f"columns: {said}"
    assert file.format == "table"
    assert (file.texts, file.truth) == (None, None)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("task,item,worker,label", r"'task' and 'item' may both hold the example.*columns are task, item, worker, "
         r"label.*--example COLUMN --annotator worker --label label"),
        ("task,worker,label,answer", r"'label' and 'answer' may both hold the label"),
        ("a,b,c,d", r"no column is named like the example; no column is named like the annotator;.*--wide"),
        ("task,worker,x,y", r"no column is named like the label"),
    ],
)  # fmt: skip
def test_a_doubt_is_an_error_that_lists_the_columns_and_the_flags(saved, header, message):
    with pytest.raises(LabelError, match=message):
        formats.read(saved(f"{header}\n1,2,3,4\n"))


def test_columns_can_be_named(saved):
    path = saved("a,b,c,d\n1,ann,x,yes\n2,bob,y,no\n")
    labels = crowdwise.read_labels(path, example="a", annotator="b", label="d")
    assert list(labels) == [(1, {"ann": "yes"}), (2, {"bob": "no"})]
    with pytest.raises(LabelError, match="no column 'z' for label;"):
        crowdwise.read_labels(path, example="a", annotator="b", label="z")
    with pytest.raises(LabelError, match="one column cannot be two things"):
        crowdwise.read_labels(path, example="a", annotator="a", label="d")
    assert candidates(["annotation_id", "label"], "label") == ["label"]


def test_whole_numbers_become_integers_and_all_else_stays_as_it_came(saved):
    labels = crowdwise.read_labels(saved("task,worker,label\n2,007,1\n10,8,0\n"))
    assert labels.examples.tolist() == [2, 10]
    assert labels.annotators.tolist() == ["007", "8"]
    assert labels.classes.tolist() == [0, 1]
    labels = crowdwise.read_labels(saved("task,worker,label\n2,a,1.0\nx,a,2\n3,a,1\n"))
    assert labels.examples.tolist() == ["2", "3", "x"]
    assert labels.classes.tolist() == [1, 2]
    for label in ("1e999", "Infinity", "²"):
        assert crowdwise.read_labels(saved(f"task,worker,label\na,b,{label}\n")).classes.tolist() == [label]


def test_labels_are_those_of_the_same_table_in_memory(saved):
    rng = np.random.default_rng(0)
    cells = sorted({(int(i), int(j)) for i, j in rng.integers(40, size=(300, 2))}, key=lambda cell: hash(cell) % 997)
    table = {
        "task": [f"t{i}" for i, _ in cells],
        "worker": [j for _, j in cells],
        "label": rng.choice(["b", "a", "c"], size=len(cells)).tolist(),
    }
    rows = "\n".join(",".join(map(str, row)) for row in zip(*table.values(), strict=True))
    read = crowdwise.read_labels(saved("task,worker,label\n" + rows))
    assert read == CrowdLabels.from_table(table)
    assert read.id_source == "sorted"
    ratings = {**table, "label": rng.normal(size=len(cells)).round(3).tolist()}
    rows = "\n".join(",".join(map(str, row)) for row in zip(*ratings.values(), strict=True))
    read = crowdwise.read_labels(saved("task,worker,label\n" + rows), scale="interval")
    assert read == CrowdLabels.from_table(ratings, scale="interval")


def test_abstentions_are_left_out_and_counted(saved):
    path = saved("task,worker,label\na,ann,1\na,bob,Unsure\nb,ann,2\nb,bob,1\nc,bob,tie\n")
    labels = formats.read(path, abstain=["Unsure", "tie"]).labels
    assert labels.classes.tolist() == [1, 2]  # numbers, as if nobody had abstained
    assert labels.examples.tolist() == ["a", "b", "c"]
    assert labels.abstentions_per_annotator.tolist() == [0, 2]
    assert labels.abstentions_per_example.tolist() == [1, 0, 1]
    assert formats.read(path, abstain=["Unsure", "tie"], scale="interval").labels.values.tolist() == [1, 2, 1]
    with pytest.warns(CrowdWarning, match="'Unsure' counts as a class"):
        assert formats.read(path, abstain="never said").labels == formats.read(path).labels


def test_missing_labels_are_left_out_and_counted(saved):
    path = saved("task,worker,label\na,ann,yes\na,bob,\nb,ann,NA\nb,bob,None\n,,\n")
    file = formats.read(path)
    assert list(file.labels) == [("a", {"ann": "yes"}), ("b", {"bob": "None"})]
    assert "left out: empty rows (1), rows without a label (1 empty, 1 'NA')" in file.notes
    assert formats.read(path, missing="None").labels.classes.tolist() == ["NA", "yes"]
    assert formats.read(saved("task,worker,label\na,ann,1\na,bob,-1\n"), missing=-1).labels.n_labels == 1


def test_in_a_wide_table_cells_are_without_a_label(saved):
    file = formats.read(saved("id,annotator_1,annotator_2\na,1,0\nb,,1\nc,NA,0\n"))
    assert "left out: cells without a label (1 empty, 1 'NA')" in file.notes


def test_columns_that_are_not_used_are_named(saved):
    file = formats.read(saved("task,worker,label,text,seconds,batch\n1,ann,yes,one,3,x\n1,bob,no,one,5,x\n"))
    assert file.notes[-1] == "other columns: seconds, batch"
    wide = formats.read(saved("id,ann,bob,cat\na,yes,no,no\nb,yes,,no\n"), wide=True, annotator=["ann", "bob"])
    assert "other columns: cat" in wide.notes
    plain = formats.read(saved("task,worker,label,text\n1,ann,yes,one\n"))
    assert not [note for note in plain.notes if "other columns" in note]


def test_a_label_without_its_example_or_annotator_is_an_error_with_the_line(saved):
    with pytest.raises(LabelError, match="line 3: every label needs"):
        formats.read(saved("task,worker,label\na,ann,yes\nb,,no\n"))
    with pytest.raises(LabelError, match="line 2: every label needs"):
        formats.read(saved("task,worker,label\n,ann,yes\n"))
    labels = formats.read(saved("task,worker,label\na,ann,yes\nb,,\n,bob,NA\n")).labels
    assert list(labels) == [("a", {"ann": "yes"})], "where there is no label, nothing is needed"
    with pytest.raises(LabelError, match="it contains no labels"):
        formats.read(saved("task,worker,label\n"))
    with pytest.raises(LabelError, match=r"it contains no labels.*\(format: table\)"):
        formats.read(saved("task,worker,label\na,ann,\n"))


def test_repeated_labels_count_once_and_different_ones_are_an_error(saved):
    with pytest.warns(CrowdWarning, match="1 label repeats"):
        assert formats.read(saved("task,worker,label\na,ann,yes\na,ann,yes\n")).labels.n_labels == 1
    path = saved("task,worker,label\na,ann,yes\na,ann,no\nb,ann,maybe\n")
    with pytest.raises(LabelError, match="annotator 'ann' on example 'a':"):
        formats.read(path)
    with pytest.warns(CrowdWarning, match="the last was kept"):
        labels = formats.read(path, on_duplicate="last").labels
    assert list(labels) == [("a", {"ann": "no"}), ("b", {"ann": "maybe"})]
    assert labels.classes.tolist() == ["maybe", "no"], "a class that only a dropped label had is none"


def test_ratings_and_fractions(saved):
    path = saved("item,rater,rating\na,ann,3.5\na,bob,4\n")
    assert formats.read(path, scale="interval").labels.values.tolist() == [3.5, 4.0]
    with pytest.raises(LabelError, match='scale="interval"'):
        formats.read(path)
    with pytest.raises(LabelError, match="ratings must be numbers; found 'good'"):
        formats.read(saved("item,rater,rating\na,ann,good\n"), scale="interval")


def test_texts_come_along(saved):
    file = formats.read(saved("task,worker,label,text\n1,ann,yes,<b>one</b>\n1,bob,no,one\n2,ann,yes,two\n"))
    assert file.texts == {1: "<b>one</b>", 2: "two"}
    assert "texts: text" in file.notes


def test_a_column_of_texts_that_is_named_is_no_annotator(saved):
    path = saved("id,annotator_1,annotator_2,said\na,1,0,one\nb,,1,two\n")
    file = formats.read(path, texts="said")
    assert file.texts == {"a": "one", "b": "two"}
    assert file.labels.annotators.tolist() == ["annotator_1", "annotator_2"]
    assert formats.read(path, wide=True, annotator=["annotator_1", "annotator_2"], texts="text").texts is None


@pytest.mark.parametrize("header", ["id,annotator_1,annotator_2", "task,rater A,rater B", "item,Worker1,Worker2"])
def test_a_column_per_annotator_is_seen_where_they_are_numbered(saved, header):
    file = formats.read(saved(f"{header}\na,1,0\nb,,1\n"))
    first, second = header.split(",")[1:]
    assert list(file.labels) == [("a", {first: 1, second: 0}), ("b", {second: 1})]
    assert file.format == "wide table"
    assert f"a column per annotator: {first}, {second}" in file.notes
    assert f"columns: {header.split(',')[0]} -> example" in file.notes


def test_a_column_per_annotator_can_be_asked_for(saved):
    path = saved("id,ann,bob,text\na,yes,no,one\nb,yes,,two\n")
    with pytest.raises(LabelError, match="--wide"):
        formats.read(path)
    file = formats.read(path, wide=True)
    assert list(file.labels) == [("a", {"ann": "yes", "bob": "no"}), ("b", {"ann": "yes"})]
    assert file.texts == {"a": "one", "b": "two"}
    assert list(formats.read(path, wide=True, annotator=["bob"]).labels) == [("a", {"bob": "no"})]
    assert formats.read(saved("ann,bob\nyes,no\nno,no\n"), wide=True).labels.examples.tolist() == [0, 1]


def test_a_column_of_texts_is_not_taken_for_an_annotator(saved):
    rows = [f"q{i},Which is better {i % 12}?,A,{'Aa'[i % 2]},{'AB'[i % 3 > 0]},m{i % 2}" for i in range(20)]
    path = saved("\n".join(["id,prompt,gpt,claude,llama,source", *rows]))
    match = "'source' does not look like an annotator.*--annotator 'gpt,claude,llama' --wide.*name 'source' too"
    with pytest.raises(LabelError, match=match):
        formats.read(path, wide=True, strip=True)
    file = formats.read(path, wide=True, strip=True, annotator=["gpt", "claude", "llama"])
    assert file.labels.classes.tolist() == ["A", "B"]
    assert file.texts["q0"] == "Which is better 0?"
    said = formats.read(path, wide=True, strip=True, annotator=["gpt", "claude", "llama", "source"])
    assert said.labels.n_annotators == 4  # whoever is named is an annotator


@pytest.mark.parametrize("sure", ["0.{}", "{}0 %", "high"])
def test_a_column_of_confidence_is_not_taken_for_an_annotator(saved, sure):
    rows = [f"q{i},{'yes' if i % 2 else 'no'},{'yes' if i % 3 else 'no'},{sure.format(i % 7)},low" for i in range(20)]
    rows += [f"q{i},yes,no,low,{sure.format(i % 7)}" for i in range(20, 40)]
    path = saved("\n".join(["id,gpt,claude,gpt_sure,claude_sure", *rows]))
    with pytest.raises(LabelError, match="'gpt_sure' does not look like"):
        formats.read(path, wide=True)
    assert formats.read(path, annotator=["gpt", "claude"]).labels.classes.tolist() == ["no", "yes"]


@pytest.mark.parametrize("header", ["id,ann,bob,Truth", "id,ann,bob,gold label", "id,rater_1,rater_2,ground_truth"])
@pytest.mark.parametrize("wide", [None, True])
def test_known_answers_beside_annotators_are_no_annotator(saved, header, wide):
    path = saved(f"{header}\na,yes,no,no\nb,yes,yes,\nc,no,no,NA\nd,no,yes,yes\n")
    file = formats.read(path, wide=wide)
    assert file.labels.annotators.tolist() == header.split(",")[1:3]
    assert file.truth == {"a": "no", "d": "yes"}
    assert f"known answers: {header.split(',')[3]} (2)" in file.notes
    named = formats.read(path, annotator=header.split(",")[1:])
    assert named.labels.n_annotators == 3  # whoever is named is an annotator
    assert named.truth is None


def test_annotators_with_answers_of_their_own_are_no_doubt_if_these_are_few_or_all_have_them(saved):
    rows = [f"q{i},yes,no,{'maybe' if i < 9 else ''}" for i in range(20)]
    assert formats.read(saved("\n".join(["id,ann,bob,cy", *rows])), wide=True, classes=["no", "yes", "maybe"])
    texts = [f"q{i},one {i},two {i},three {i}" for i in range(20)]
    assert formats.read(saved("\n".join(["id,ann,bob,cy", *texts])), wide=True).labels.n_annotators == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,ann,bob\na,1,0\na,1,1\n", r"row 2 after the header:.*'id' 'a' occurs a second time"),
        ("id,ann,bob\n,1,0\n", "row 1 after the header:.*it is empty"),
        ("task,item,ann,bob\na,b,1,0\n", "may both hold the ids of the examples. Name the right one: --example"),
        ("id\na\n", "no column is left for an annotator"),
    ],
)
def test_a_wide_table_has_a_row_per_example(saved, content, message):
    with pytest.raises(LabelError, match=message):
        formats.read(saved(content), wide=True)


def test_a_column_of_ids_that_is_named_as_an_annotator_is_refused(saved):
    path = saved("name,ann,bob\n" + "".join(f"n{i},1,0\n" for i in range(20)))
    assert formats.read(path, wide=True).labels.examples[0] == "n0"
    with pytest.raises(LabelError, match="looks like ids of the examples"):
        formats.read(path, annotator=["name", "ann", "bob"])


def test_reading_can_be_watched(saved, set_constants):
    set_constants("crowdwise.tables._delimited", N_ROWS=2)
    seen = []
    formats.read(saved("task,worker,label\n" + "".join(f"{i},ann,yes\n" for i in range(5))), on_rows=seen.append)
    assert seen == [2, 4, 5]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units there")
def test_a_million_labels_take_a_tenth_of_the_memory_that_ten_million_may_take(tmp_path):
    path = tmp_path / "labels.csv"
    with path.open("w") as file:
        file.write("task,worker,label\n")
        file.writelines(
            f"tweet-{i // 5},w{(i // 5 + 7 * (i % 5)) % 1000},{'yes' if i % 3 else 'no'}\n" for i in range(10**6)
        )
    code = f"""
import resource, crowdwise.formats
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
labels = crowdwise.read_labels({str(path)!r})
print(labels.n_labels, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    n_labels, megabytes = done.stdout.split()
    assert int(n_labels) == 10**6
    assert float(megabytes) < (1024 - 150) / 10  # 1 GiB without Python and NumPy


def test_answers_one_by_one_are_those_in_columns():
    rows = [("b", "ann", "1"), ("a", "bob", "NA"), ("a", "ann", "0")]
    single, many = Answers("labels.csv"), Answers("labels.csv")
    for row in rows:
        single.add(*row)
    many.extend(*zip(*rows, strict=True))
    single, many = single.label_file("table"), many.label_file("table")
    assert single.notes == many.notes == ("left out: rows without a label (1 'NA')",)
    assert single.labels == many.labels


def test_declared_classes_keep_their_order_and_any_other_label_is_an_error(saved):
    path = saved("task,worker,label\na,ann,no\na,bob,yes\nb,ann,?\n")
    labels = formats.read(path, classes=["yes", "perhaps", "no"], abstain=["?"]).labels
    assert labels.classes.tolist() == ["yes", "perhaps", "no"]
    assert labels.to_table()["label"].tolist() == ["no", "yes"]
    assert labels.n_abstentions == 1
    with pytest.raises(
        LabelError, match=r"declared classes \['yes', 'no'\]; found '\?' for example 'b', annotator 'ann'"
    ):
        formats.read(path, classes=["yes", "no"])
    numbers = formats.read(saved("task,worker,label\na,ann,0.5\na,bob,2\n"), classes=[2, 1, 0.5]).labels
    assert numbers.classes.tolist() == [2, 1, 0.5]
    assert dict(numbers) == {"a": {"ann": 0.5, "bob": 2.0}}
    with pytest.raises(LabelError, match="have no classes"):
        formats.read(saved("task,worker,label\na,ann,1\n"), classes=[1, 2], scale="interval")


def test_what_is_said_to_be_no_label_and_never_occurs_is_told(saved):
    path = saved("task,worker,label\na,ann,-1\na,bob,1\nb,bob,0\n")
    assert "never given" not in " ".join(formats.read(path, missing=["-1", "NA"]).notes)
    assert formats.read(path, abstain=["-1"]).notes[-1] == "1 abstention (counted, not used as labels)"
    found = formats.read(path, missing=["-1", "-9"], abstain=["?"]).notes[-1]
    assert found == "declared as no label, but never given: '-9', '?'"
    path = saved("task,worker,label\na,ann,Unsure\na,bob,tie\nb,bob,no\n")
    with pytest.warns(CrowdWarning, match="'Unsure' counts as a class"):
        found = formats.read(path, abstain=["unsure", "Unsure,tie"]).notes[-1]
    assert "'unsure' (is 'Unsure' meant?), 'Unsure,tie' (are 'Unsure', 'tie' meant? Name each by itself)" in found


WIDE = "id,ann,bob,cy\n1,yes,no,yes\n2,no,no,\n3,yes,,yes\n4,yes,no,no\n"


@pytest.mark.parametrize(
    "content",
    [
        WIDE,
        WIDE.replace("id,", "text,"),
        WIDE.replace("yes", "1").replace("no,", "0,").replace("no\n", "0\n"),
        "\n".join(line.partition(",")[2] for line in WIDE.splitlines()),  # no ids
    ],
    ids=["ids", "texts", "numbers", "no ids"],
)
def test_a_column_per_annotator_is_seen_by_the_values(saved, content):
    file = formats.read(saved(content))
    assert file.format == "wide table"
    assert file.labels.annotators.tolist() == ["ann", "bob", "cy"]
    assert file.labels.n_labels == 10
    assert any("recognised by their values" in note for note in file.notes)


@pytest.mark.parametrize("header", ["id,prompt,output,gpt,llama", "qid,question,answer,gpt,llama"])
def test_judges_beside_texts_are_read_at_once_and_ids_are_ids(saved, header):
    rows = [f"c{i},Summarise article {i}.,It is about {i} things.,{i % 2},{i % 3 and 1}" for i in range(20)]
    file = formats.read(saved("\n".join([header, *rows])))
    assert file.labels.annotators.tolist() == ["gpt", "llama"]
    assert file.labels.examples[0] == "c0"
    assert file.texts["c3"] == "Summarise article 3."
    alone = formats.read(saved("\n".join(row.replace("c", "", 1).partition(",")[2] for row in [header, *rows])))
    assert alone.labels.annotators.tolist() == ["gpt", "llama"]


def test_a_column_of_fractions_or_of_few_rows_is_no_column_of_ids(saved):
    rows = [f"0.{i + 10},{'yes' if i % 2 else 'no'},{'yes' if i % 3 else 'no'}" for i in range(20)]
    with pytest.raises(LabelError, match="--wide"):
        formats.read(saved("\n".join(["sure,gpt,llama", *rows])))
    with pytest.raises(LabelError, match="--wide"):
        formats.read(saved("tag,gpt,llama\nx,yes,no\ny,no,no\nz,yes,yes\n"))


def test_an_annotator_of_few_examples_may_have_few_of_the_classes(saved):
    file = formats.read(saved("id,ann,bob,cy\n1,0,0,\n2,1,1,\n3,2,1,\n4,3,3,\n5,4,4,4\n6,1,2,\n"))
    assert file.format == "wide table"
    assert file.labels.labels_per_annotator.tolist() == [6, 6, 1]


def test_of_many_columns_only_some_are_listed(saved):
    with pytest.raises(LabelError, match="its columns are a, b,"):
        formats.read(saved(f"{','.join('abcdefghij')}\n{','.join('0123456789')}\n"), example="z")


def test_a_table_without_a_header_is_asked_for_one(saved):
    with pytest.raises(LabelError, match="If its first line is"):
        formats.read(saved("7,ann,yes\n7,bob,no\n8,ann,no\n"))


@pytest.mark.parametrize(
    "content",
    [
        "a,b,c\n1,2,3\n",
        "id,ann,bob\n1,yes,red\n2,no,blue\n3,yes,red\n",  # columns that share nothing
        "id,ann,bob,size\n1,yes,no,3\n2,no,no,5\n3,yes,no,1\n",  # one column more
        "id,ann,bob\n1,yes,no\n1,no,no\n2,yes,yes\n",  # ids repeat: a row may be a label
        "x,y,z\n0,0,1\n0,1,1\n1,0,0\n1,1,0\n2,0,1\n",  # numbers without ids
        "id,first,label\n1,yes,no\n2,no,no\n3,yes,yes\n",
        "id,ann\n1,yes\n2,no\n",
    ],
)
def test_a_doubt_whether_there_is_a_column_per_annotator_is_an_error(saved, content):
    with pytest.raises(LabelError, match="--wide"):
        formats.read(saved(content))


@pytest.mark.parametrize("no_label", ["missing", "abstain"])
def test_what_is_no_label_is_none_in_any_spelling_if_spellings_are_one(saved, no_label):
    path = saved("task,worker,label\na,ann,yes\na,bob,Unsure \nb,ann,no\nb,bob,UNSURE\n")
    file = formats.read(path, strip=True, **{no_label: ["unsure"]})
    assert file.labels.classes.tolist() == ["no", "yes"]
    assert file.labels.n_labels == 2
    assert "never given" not in " ".join(file.notes)
    assert "never given" in " ".join(formats.read(path, strip=True, **{no_label: ["unsure", "don't know"]}).notes)


def test_labels_that_are_spelt_alike_become_one_if_asked_to(saved):
    path = saved("task,worker,label\na,ann,Yes\na,bob, yes\nb,ann,no\nb,bob,NO \nc,ann, NA\nc,bob,no\nc,cy,yes\n")
    file = formats.read(path, strip=True)
    assert file.labels.classes.tolist() == ["no", "yes"]  # the spellings that are most frequent
    assert file.labels.n_labels == 6
    assert dict(file.labels)["a"] == {"ann": "yes", "bob": "yes"}
    declared = formats.read(path, strip=True, classes=["YES", "No"]).labels
    assert declared.classes.tolist() == ["YES", "No"]
    assert dict(declared)["b"] == {"ann": "No", "bob": "No"}
    with pytest.warns(CrowdWarning, match="--strip"), pytest.warns(CrowdWarning, match="' NA' counts as a class"):
        formats.read(path)


@pytest.mark.parametrize("named", ["task,worker,label", "id,w,x"])
def test_a_name_is_looked_at_a_few_times_however_many_columns_there_are(saved, monkeypatch, named):
    n_looks = 0
    look = _names.plain_name

    def counted(name):
        nonlocal n_looks
        n_looks += 1
        return look(name)

    for module in (_names, _plain):
        monkeypatch.setattr(module, "plain_name", counted)
    header = [*named.split(","), *(f"c{i}" for i in range(300))]
    rows = [[str(i), *("yes" if i % 2 else "no" for _ in header[1:])] for i in range(4)]
    file = formats.read(saved("\n".join(map(",".join, [header, *rows]))))
    assert file.labels.n_labels == (4 if "task" in named else 4 * 302)
    assert n_looks < 40 * len(header)


def test_more_than_50_000_columns_are_refused(saved):
    header = ",".join(f"c{i}" for i in range(50_001))
    with pytest.raises(DataError, match="has 50,001 columns; at most"):
        formats.read(saved(f"{header}\n{header}\n"))


def test_answers_in_common_are_those_of_columns_that_touch_one_another():
    columns = [{"a", "b"}, {"b", "c"}, {"x"}, {"y"}, {"c", "d"}, {"1", "2"}, {"2"}, {"d", "e"}]
    assert _plain._answers_in_common(columns) == {"1", "2"}
    assert _plain._answers_in_common(columns[:5]) == {"a", "b", "c", "d"}
    assert _plain._answers_in_common([{"a"}, {"b"}, {"c"}, {"a", "b", "c"}]) == {"a", "b", "c"}
    assert _plain._answers_in_common([{"a"}, {"b"}]) == set()
