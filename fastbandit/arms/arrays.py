"""Kinds of arrays, and how they are protected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = np.ndarray[Any, Any]
Mask = NDArray[np.bool_]


def read_only(array: Array) -> Array:
    """Return a contiguous array that cannot be written to, as those mapped from a file are."""
    array = np.ascontiguousarray(array).view()
    array.flags.writeable = False
    return array
