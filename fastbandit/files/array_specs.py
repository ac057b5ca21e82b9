"""What the arrays of a file must be, declared beside each: numbers, shape, and where they point.

Compiled code reads them without a look: what is not checked here may end the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, NamedTuple

import numpy as np

_SPEC = "spec"


class ArraySpec(NamedTuple):
    """Sizes by name or as numbers, kinds of numbers, and the range of those that are positions.

    Positions are at least `least`, and below the size called `below`.
    """

    shape: tuple[str, ...]
    dtypes: tuple[str, ...]
    least: int | None
    below: str
    is_finite: bool


def stored(
    shape: str,
    *dtypes: str,
    least: int | None = None,
    below: str = "",
    is_finite: bool = True,
    **more: Any,
) -> Any:
    """Return a field of a dataclass for an array of a file; `shape` names its sizes in order."""
    spec = ArraySpec(tuple(shape.split()), dtypes or ("float32",), least, below, is_finite)
    return field(metadata={_SPEC: spec}, **more)


def specs_of(part: Any) -> list[ArraySpec]:
    """Return what each array of a part is declared as, in order."""
    return [field.metadata[_SPEC] for field in fields(part)]


def check_arrays(part: Any, sizes: Mapping[str, int]) -> None:
    """Raise ValueError unless each array of a part is as declared; a size that is a digit is it."""
    for own in fields(part):
        if (spec := own.metadata.get(_SPEC)) is not None:
            check_array(own.name, getattr(part, own.name), spec, sizes)


def check_array(name: str, array: Any, spec: ArraySpec, sizes: Mapping[str, int]) -> None:
    """Raise ValueError unless an array is as declared."""
    wanted = tuple(int(size) if size.isdigit() else sizes[size] for size in spec.shape)
    if array.shape != wanted or array.dtype.name not in spec.dtypes:
        raise ValueError(
            f"{name} has shape {array.shape} of {array.dtype}, and {wanted} of "
            f"{' or '.join(spec.dtypes)} fits the others"
        )
    if not array.size:
        return
    if spec.least is not None and not spec.least <= array.min() <= array.max() < sizes[spec.below]:
        raise ValueError(
            f"{name} points at {array.min()} to {array.max()}, and only {spec.least} to "
            f"{sizes[spec.below] - 1} are there"
        )
    if spec.is_finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")
