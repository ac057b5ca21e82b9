"""An array that is not as declared is named, with what fits the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from fastbandit.files.array_specs import check_arrays, stored

SIZES = {"rows": 3, "dim": 2}


@dataclass(frozen=True)
class Part:
    """Vectors, and positions among them."""

    vectors: Any = stored("rows dim")
    near: Any = stored("2", "int32", least=-1, below="rows")
    note: str = ""


def part() -> Part:
    return Part(np.zeros((3, 2), np.float32), np.array([-1, 2], np.int32))


def test_what_is_as_declared_passes() -> None:
    check_arrays(part(), SIZES)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vectors": np.zeros((3, 3), np.float32)}, r"vectors has shape \(3, 3\)"),
        ({"vectors": np.zeros(6, np.float32)}, r"\(3, 2\) of float32 fits"),
        ({"vectors": np.zeros((3, 2))}, "float64"),
        ({"vectors": np.full((3, 2), np.nan, np.float32)}, "vectors holds .* not finite"),
        ({"near": np.array([0, 3], np.int32)}, "near points at 0 to 3, and only -1 to 2"),
        ({"near": np.array([-2, 0], np.int32)}, "near points at -2"),
    ],
)
def test_what_is_not_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_arrays(replace(part(), **change), SIZES)


def test_numbers_that_need_not_be_finite_may_be_infinite() -> None:
    @dataclass(frozen=True)
    class Loose:
        ends: Any = stored("2", is_finite=False)

    check_arrays(Loose(np.array([-np.inf, np.inf], np.float32)), {})
