import pytest
from constants import changed

from crowdwise.runs import run


def test_a_constant_has_its_old_value_after_the_block():
    before = (run._MOST_NEXT, run.NOTE)
    with changed("crowdwise.runs.run", _MOST_NEXT=3), changed(run, NOTE="note"):
        assert (run._MOST_NEXT, run.NOTE) == (3, "note")
    assert before == (run._MOST_NEXT, run.NOTE)


@pytest.mark.parametrize("name", ["_MOST_WHATEVER", "fit"])
def test_what_is_no_constant_cannot_be_changed(name):
    with pytest.raises(AttributeError, match=f"has no constant {name}"), changed(run, **{name: 3}):
        pass
