"""A tiny arm space of each kind."""

from __future__ import annotations

from collections.abc import Callable

from fakes import catalogue_of, vectors_of

from fastbandit import Box
from fastbandit.arms.box_space import BoxSpace
from fastbandit.interfaces import ArmSpace

DIM = 3


def box() -> BoxSpace:
    return BoxSpace(Box((-2.0,) * DIM, (2.0,) * DIM, cover=400), encode=lambda values: values)


SPACES: dict[str, Callable[[], ArmSpace]] = {
    "catalogue": lambda: catalogue_of(vectors_of(400, DIM)),
    "box": box,
}
