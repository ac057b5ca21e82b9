"""Sparse tables of numbers, made with SciPy where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import MissingExtraError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def to_csr(
    numbers: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    *,
    shape: tuple[int, int],
) -> csr_matrix:
    """Make a matrix of float32 from its numbers and their positions, none of them named twice."""
    try:
        from scipy.sparse import csr_matrix
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "This dataset needs scipy, which is not installed. Run: pip install -e '.[lab]'"
        ) from error
    matrix = csr_matrix((numbers.astype(np.float32), (rows, columns)), shape=shape)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
