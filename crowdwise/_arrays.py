"""Names for the arrays that functions take and give, so that signatures show what is in them; records of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.integer]
Positions = NDArray[np.intp]

# Numbers that differ by less than this share of their range are equal but for rounding, which decides nothing.
TIED = 1e-9
# Sums and shares that are smaller than this, relative to what they are of, are nothing but rounding.
ROUNDING = 1e-12


def read_only(array: Array) -> Array:
    """The same numbers in an array that cannot be written to; nothing is copied."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)
    return view


def in_c_order(array: Array) -> Array:
    """A copy laid out as a new array is: products with other layouts, which no file keeps, have other last digits."""
    return np.array(array, order="C")


def ratio(above: Array, below: Array, otherwise: float = np.nan) -> Floats:
    """A quotient; `otherwise` where there is nothing to divide by."""
    return np.divide(above, below, out=np.full(below.shape, otherwise), where=below > 0)


class FrozenArrays:
    """A frozen dataclass whose arrays are frozen too: they are read-only, and ``.copy()`` gives one of your own."""

    def __post_init__(self) -> None:
        self._freeze()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._freeze()  # arrays thaw when they are pickled

    def _freeze(self) -> None:
        arrays = {name: read_only(value) for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        vars(self).update(arrays)
