"""The name of an extra -> how to install it."""


def how_to_install(extra: str) -> str:
    """What to type, from a package index and in a checkout.

    Parameters
    ----------
    extra : str
        A name of ``[project.optional-dependencies]`` in pyproject.toml.

    Returns
    -------
    words : str

    Examples
    --------
    >>> how_to_install("plot")
    "pip install 'crowdwise[plot]' (in a checkout of crowdwise: pip install '.[plot]')"
    """
    return f"pip install 'crowdwise[{extra}]' (in a checkout of crowdwise: pip install '.[{extra}]')"
