import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from crowdwise.exceptions import DataError
from crowdwise.features._columns import Categories, Numbers, Words, as_numbers, as_vectors, distinct


@pytest.mark.parametrize("nothing", ["", " ", "NA", "nan", "NULL", "None", "n/a", None, float("nan")])
def test_gaps_are_filled_with_the_median_and_counted(nothing):
    values = as_numbers(["1", nothing, "2", "6"])[:, np.newaxis]
    X, n_gaps = Numbers.learn("size", values).transform(["1", nothing, "2", "6"])
    filled = np.array([1.0, 2.0, 2.0, 6.0])
    np.testing.assert_allclose(X[:, 0], (filled - filled.mean()) / filled.std())
    assert n_gaps == 1


def test_new_rows_are_scaled_as_those_of_the_fit():
    column = Numbers.learn("size", np.array([[0.0], [2.0]]))
    assert column.transform(["4", "1"])[0].tolist() == [[3.0], [0.0]]


def test_a_constant_column_becomes_zero_even_if_rounding_spreads_it():
    X, _ = Numbers.learn("size", np.full((7, 1), 0.1)).transform(["0.1", "0.1"])
    np.testing.assert_allclose(X, 0, atol=1e-12)


def test_an_infinite_number_is_an_error_with_its_row():
    with pytest.raises(DataError, match="'size' holds an infinite or"):
        Numbers.learn("size", as_numbers(["1", "inf"])[:, np.newaxis])


def test_a_text_among_the_numbers_of_new_rows_is_an_error_with_its_row():
    with pytest.raises(DataError, match="'size' held numbers in the"):
        Numbers.learn("size", np.array([[0.0], [2.0]])).transform(["1", "large"])


def test_an_unknown_category_is_all_zeros_and_counted():
    colours = Categories("colour", distinct(["red", "blue", "red "]))
    X, n_unknown = colours.transform(["blue", "green", ""])
    assert X.toarray().tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert n_unknown == 2


def test_words_of_new_texts_count_as_in_the_fit():
    texts = ["good film", "bad film", "good good film", "bad ending"]
    words = Words.learn("text", texts)
    assert "film" in words.terms
    assert "ending" not in words.terms  # in one text only
    direct = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit_transform(texts)
    np.testing.assert_allclose(words.transform(texts)[0].toarray(), direct.toarray(), rtol=1e-14)
    X, n_without = words.transform(["film", "nothing known"])
    assert X.shape == (2, len(words.terms))
    assert n_without == 1


def test_texts_without_spaces_are_cut_into_characters():
    words = Words.learn("text", ["今天天气很好", "今天下雨了", "天气不好"])
    assert words.unit == "char"
    assert "天气" in words.terms


def test_the_most_frequent_terms_are_kept_if_there_are_too_many(set_constants):
    set_constants("crowdwise.features._columns", MOST_TERMS=2)
    assert Words.learn("text", ["film film a lot", "film a lot", "film a la carte a la"]).terms[0] == "film"


@pytest.mark.parametrize("cell", ["[1, 2.5]", "1 2.5", "1,2.5", "1; 2.5", [1, 2.5], np.array([1.0, 2.5])])
def test_lists_of_numbers_are_read_however_they_are_written(cell):
    assert as_vectors([cell], "e").tolist() == [[1.0, 2.5]]


def test_lists_of_different_lengths_are_an_error_with_the_row():
    with pytest.raises(DataError, match="must be of one length;"):
        as_vectors(["1 2", "3", "4 5"], "e")


def test_a_cell_that_is_no_list_of_numbers_is_an_error_with_the_row():
    with pytest.raises(DataError, match=r"row 2 holds 'red'"):
        as_vectors(["1 2", "red"], "e")
