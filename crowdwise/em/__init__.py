"""A posterior over classes: labels alone, with logistic regression, or with any classifier."""

from crowdwise.em.confusion import Confusion, OneCoin, Shared
from crowdwise.em.ordinal import Ordinal

__all__ = ["Confusion", "OneCoin", "Ordinal", "Shared"]
