"""Names for the arrays that functions take and give, so that signatures say what is in them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.integer]
Positions = NDArray[np.intp]
