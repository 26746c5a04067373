import json
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("filelock")

from crowdwise.exceptions import DataError, OutputError
from crowdwise.formats import read
from crowdwise.runs import Run, fit, open_run
from crowdwise.runs.questions import fit_questions

EXPORT = Path(__file__).parents[1] / "formats" / "files" / "label_studio_questions.json"


def answer(name, value):
    return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": [value]}}


@pytest.fixture
def export(tmp_path):
    """Two questions that can be fitted, and one with one answer only."""
    tasks = []
    for i in range(12):
        given = [answer("tone: <b>", "kind" if i % 2 else "rude"), answer("Tone", "news" if i % 3 else "sport")]
        annotations = [{"completed_by": who, "result": [*given, answer("note", "seen")]} for who in (1, 2)]
        tasks.append({"id": i, "data": {"text": f"text {i}"}, "annotations": annotations})
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return path


def test_every_question_has_a_run_and_the_index_leads_to_them(export, tmp_path):
    runs = fit_questions(export, out=tmp_path / "runs", command="as typed")
    assert [name for name, run in runs.items() if isinstance(run, Run)] == ["tone: <b>", "Tone"]
    page = (tmp_path / "runs" / "index.html").read_text(encoding="utf-8")
    assert "tone: &lt;b&gt;" in page
    assert "Not fitted: " in page
    note = json.loads((tmp_path / "runs" / "questions.json").read_text())
    links = [row["report"] for row in note["questions"] if "report" in row]
    assert len(set(map(str.casefold, links))) == 2
    for link, question in zip(links, ["tone: <b>", "Tone"], strict=True):
        assert f'href="{link}"' in page
        kept = open_run((tmp_path / "runs" / link).parent)
        alone = fit(export, labels_as={"question": question})
        assert kept.table("consensus").as_csv() == alone.table("consensus").as_csv()


def test_a_folder_of_questions_is_replaced_only_if_asked_and_if_it_is_one(export, tmp_path):
    fit_questions(export, out=tmp_path / "runs")
    with pytest.raises(OutputError, match="already exists"):
        fit_questions(export, out=tmp_path / "runs")
    fit_questions(export, out=tmp_path / "runs", force=True)
    (tmp_path / "runs" / "mine.txt").write_text("precious")
    with pytest.raises(OutputError, match="not replaced"):
        fit_questions(export, out=tmp_path / "runs", force=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("precious")
    with pytest.raises(OutputError, match="not replaced"):
        fit_questions(export, out=tmp_path / "other", force=True)


def test_one_question_needs_no_choice_and_several_name_the_way(tmp_path):
    (tmp_path / "labels.csv").write_text("task,worker,label\n1,a,x\n1,b,y\n2,a,x\n")
    with pytest.raises(DataError, match="has one question"):
        fit_questions(tmp_path / "labels.csv", out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    with pytest.raises(DataError, match="has 2 questions") as error:
        read(EXPORT)
    assert "--question all" in str(error.value)
