"""Groups as users give them."""

import numpy as np
import pytest

from crowdwise.exceptions import CrowdWarning, LabelError
from crowdwise.labels._groups import check_groups, group_numbers


def test_groups_are_given_by_name_or_in_order():
    pd = pytest.importorskip("pandas")
    names = np.array(["ann", "bob", "cem"])
    for groups in ({"cem": "x", "ann": "x"}, pd.Series(["x", "x"], index=["cem", "ann"]), ["x", None, "x"], [1, 2, 1]):
        assert group_numbers(check_groups(groups, names)).tolist() == [0, 1, 0]
    assert check_groups(None, names) is None
    assert group_numbers(check_groups({"ann": None}, names)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("groups", ["openai", ["x", "y"], 3])
def test_groups_that_are_none_are_refused(groups):
    with pytest.raises(LabelError, match="groups must be a mapping"):
        check_groups(groups, np.array(["ann", "bob", "cem"]))


def test_groups_of_strangers_are_refused_or_noted():
    with pytest.raises(LabelError, match=r"groups names 1 annotator \(such as .*\), and none of those who gave labels"):
        check_groups({"Ann": "x"}, np.array(["ann", "bob"]))
    with pytest.raises(LabelError, match=r"each with its group: \{'ann': 'a', ...\}"):
        check_groups({"people": ["ann", "bob"]}, np.array(["ann", "bob"]))
    with pytest.warns(CrowdWarning, match=r"such as 'gpt4o-mini' \(is 'gpt-4o-mini' meant\?\)"):
        check_groups({"gpt-4o": "x", "gpt4o-mini": "x"}, np.array(["gpt-4o", "gpt-4o-mini"]))
    with pytest.warns(CrowdWarning, match="groups names 1 annotator who"):
        assert check_groups({"ann": "x", "bob": "x", "dan": "x"}, np.array(["ann", "bob"])).tolist() == ["x", "x"]
