"""The name of an extra -> how to install it."""


def how_to_install(extra: str) -> str:
    """What to type for a name of ``[project.optional-dependencies]``, from a package index and in a checkout.

    Examples
    --------
    >>> how_to_install("plot")
    "pip install 'crowdwise[plot]' (in a checkout of crowdwise: pip install '.[plot]')"
    """
    return f"pip install 'crowdwise[{extra}]' (in a checkout of crowdwise: pip install '.[{extra}]')"
