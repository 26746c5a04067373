from crowdwise.paper import theory


def test_names_are_sorted_and_importable():
    assert theory.__all__ == sorted(theory.__all__)
    assert all(hasattr(theory, name) for name in theory.__all__)
