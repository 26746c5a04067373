"""Files of features -> numbers for a model, and the recipe that makes the same numbers of new rows."""

from crowdwise.features._read import FeatureTable, read_features
from crowdwise.features._recipe import Recipe

__all__ = ["FeatureTable", "Recipe", "read_features"]
