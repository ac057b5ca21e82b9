"""How a contract says what is wrong: a law that is broken raises an AssertionError."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_CLOSE = 1e-3


def need(is_met: bool, problem: str) -> None:
    """Raise a problem unless a law is met."""
    if not is_met:
        raise AssertionError(problem)


def need_equal(found: Any, wanted: Any, what: str) -> None:
    """Raise unless two values are equal."""
    need(found == wanted, f"{what}: {found!r}, not {wanted!r}")


def need_close(found: Tensor, wanted: Tensor, what: str) -> None:
    """Raise unless two tensors agree, up to rounding at the scale of their largest number."""
    need(found.shape == wanted.shape, f"{what}: shape {found.shape}, not {wanted.shape}")
    if not wanted.numel():
        return
    gap = float((found.double() - wanted.double()).abs().max())
    rounding = _CLOSE * max(1.0, float(wanted.double().abs().max()))
    need(gap <= rounding, f"{what}: differs by {gap:.3g}, where {rounding:.3g} is rounding")
