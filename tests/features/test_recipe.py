import json

import numpy as np
import pytest
from scipy import sparse

from crowdwise.exceptions import DataError
from crowdwise.features import Recipe

TABLE = {
    "size": ["1", "2", "", "4"],
    "colour": ["red", "blue", "red", "red"],
    "text": ["a good film", "a bad film", "a good end", "a bad end"],
    "vector": ["[1, 0]", "[0, 1]", "[1, 1]", "[0, 0]"],
}


def test_numbers_and_categories_are_side_by_side():
    recipe, notes = Recipe.learn({name: TABLE[name] for name in ("size", "colour")})
    X, gaps = recipe.transform(TABLE)
    assert X.shape == (4, 3)
    assert not sparse.issparse(X)
    assert X[:, 1].tolist() == [0.0, 1.0, 0.0, 0.0]  # blue
    assert notes == ["features: 'size' as numbers, scaled", "features: 'colour' as 2 categories"]
    assert gaps == ["1 gap in 'size' was filled with the median"]


def test_texts_make_it_sparse_and_other_columns_are_used_only_if_they_are_named():
    recipe, _ = Recipe.learn(TABLE, text=["text"])
    X, _ = recipe.transform(TABLE)
    assert sparse.issparse(X)
    more, _ = Recipe.learn(TABLE, text=["text"], embedding=["vector"], columns=["size"])
    assert more.transform(TABLE)[0].shape[1] == X.shape[1] + 3


@pytest.mark.parametrize("parts", [{"text": ["text"]}, {"embedding": ["vector"]}, {"columns": ["size", "colour"]}])
def test_what_is_written_as_json_makes_the_same_numbers(parts):
    recipe, _ = Recipe.learn(TABLE, **parts)
    again = Recipe.from_json(recipe.to_json())
    first, second = (found.transform(TABLE)[0] for found in (recipe, again))
    if sparse.issparse(first):
        first, second = first.toarray(), second.toarray()
    np.testing.assert_array_equal(first, second)


def test_a_column_that_may_hold_answers_is_left_out_and_told():
    recipe, notes = Recipe.learn({"size": ["1", "2"], "Truth": ["0", "1"]})
    assert [column.name for column in recipe.columns] == ["size"]
    assert "'Truth' is left out because it may hold answers" in notes[-1]


@pytest.mark.parametrize("name", ["__index_level_0__", "Unnamed: 0", "column 1"])
def test_the_index_of_a_frame_that_was_written_beside_the_columns_is_left_out_and_told(name):
    recipe, notes = Recipe.learn({name: ["7", "0", "3"], "size": ["1", "2", "2"]})
    assert [column.name for column in recipe.columns] == ["size"]
    assert f"column {name!r} is left out because it numbers the rows (--columns to use it)" in notes
    for kept, wanted in ((["0.5", "1", "2"], None), (["1", "1", "2"], None), (["7", "0", "3"], [name])):
        assert Recipe.learn({name: kept}, columns=wanted)[0].columns[0].name == name


@pytest.mark.parametrize("cells", [["0,5", "1,25", "NA"], ["-3,5", "2", "1,0"]])
def test_numbers_with_a_decimal_comma_are_neither_categories_nor_texts(cells):
    table = {"size": cells, "age": ["1", "2", "3"], "pair": ["1,2", "a", "b"]}
    with pytest.raises(DataError, match="'size' holds numbers with a"):
        Recipe.learn(table)
    assert len(Recipe.learn(table, columns=["age", "pair"])[0].columns) == 2


def test_a_column_of_many_texts_is_left_out_with_the_flag_that_uses_it():
    many = [f"text {i}" for i in range(60)]
    _, notes = Recipe.learn({"size": list(map(str, range(60))), "words": many})
    assert notes[-1] == "column 'words' is left out: 60 different texts (--text words to use it)"
    with pytest.raises(DataError, match="no column can be used"):
        Recipe.learn({"words": many})


@pytest.mark.parametrize("parts", [{"text": ["txt"]}, {"embedding": ["txt"]}, {"columns": ["txt"]}])
def test_a_column_that_is_not_there_is_told_with_those_that_are(parts):
    with pytest.raises(DataError, match="there is no column 'txt';"):
        Recipe.learn(TABLE, **parts)


def test_new_rows_without_a_column_of_the_fit_are_an_error():
    recipe, _ = Recipe.learn(TABLE, columns=["size"])
    with pytest.raises(DataError, match="need the columns 'size', as"):
        recipe.transform({"length": ["1"]})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: "{",
        lambda content: "[]",
        lambda content: content.replace("numbers", "pickles"),
        lambda content: content.replace('"fill"', '"filled"'),
    ],
)
def test_a_damaged_description_is_a_data_error(spoil):
    recipe, _ = Recipe.learn(TABLE, columns=["size"])
    with pytest.raises(DataError, match="damaged"):
        Recipe.from_json(spoil(recipe.to_json()))


def test_a_description_of_another_version_says_which():
    recipe, _ = Recipe.learn(TABLE, columns=["size"])
    later = json.dumps(json.loads(recipe.to_json()) | {"schema": "crowdwise.features/9"})
    with pytest.raises(DataError, match=r"crowdwise\.features/9.*reads 'crowdwise\.features/1'"):
        Recipe.from_json(later)


def test_every_number_of_a_row_has_a_name():
    table = {
        "size": ["1", "2", "3", "4"],
        "colour": ["red", "blue", "red", "blue"],
        "at": [[1, 2], [3, 4], [5, 6], [0, 1]],
    }
    table["text"] = ["good day", "bad day", "good night", "bad night"]
    recipe, _ = Recipe.learn(table, text=["text"], embedding=["at"], columns=["size", "colour"])
    X, _ = recipe.transform(table)
    assert len(recipe.feature_names) == X.shape[1]
    assert recipe.feature_names[-5:] == ["at 0", "at 1", "size", "colour: blue", "colour: red"]
    column = X.toarray()[:, recipe.feature_names.index("good")]
    assert (column > 0).tolist() == [True, False, True, False]
