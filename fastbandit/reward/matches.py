"""What contexts and arms have in common by name: directions of texts in one space, and levels.

Where both sides have texts of one space, a product of two coordinates, one of the context and one
of the arm, says how alike they are in one direction; numbers of both sides may go together, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fastbandit.features.columns import Number
from fastbandit.features.kinds import Dense
from fastbandit.features.schema import Schema
from fastbandit.features.text_columns import Category, CategorySet, Text
from fastbandit.types import Features, Floats

_TEXT, _ALL = 16, 24  # so many directions of texts, and matches in all
REST = 8
"""So many coordinates of a side are left to what does not match."""
_NEVER = 1e6
_SAME, _APART = 0.5, 0.25  # deviations of what all matches of a kind have in common, and of each


@dataclass(frozen=True)
class Side:
    """Numbers of contexts, or of arms: those of each match, and those that are plain numbers."""

    matches: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...]

    def rows(self, scales: Floats, texts: int) -> Floats:
        """Return a map from standardised numbers to matches; texts differ as before scaling."""
        found = np.zeros((len(self.matches), len(scales)))
        for row, numbers in enumerate(self.matches):
            for number in numbers:
                found[row, number] = scales[number] if row < texts else 1.0
        if texts:
            found[:texts] /= max(float(np.sqrt(np.square(found[:texts]).sum(1).mean())), 1e-9)
        return found


@dataclass(frozen=True)
class Matches:
    """Both sides, of which the first `texts` matches are directions of texts, others levels."""

    context: Side
    arm: Side
    texts: int

    @property
    def count(self) -> int:
        return len(self.context.matches)

    @property
    def pairs(self) -> tuple[int, int]:
        """How many plain numbers each side has, of which any two may go together."""
        return min(REST, len(self.context.numbers)), min(REST, len(self.arm.numbers))

    def prior_precision(self, pair: float) -> Floats:
        """Return the precision of weights of all products: matches of a kind have much in common.

        That of two plain numbers is `pair`; what else there is does not go together.
        """
        numbers = self.count + min(self.pairs)
        found = np.diag(np.full(self.count + REST, _NEVER))
        found[range(self.count, numbers), range(self.count, numbers)] = pair
        for part in (slice(0, self.texts), slice(self.texts, self.count)):
            many = part.stop - part.start
            if many:
                same = np.full((many, many), _SAME**2) + np.eye(many) * _APART**2
                shared = many if part.start == 0 else 1  # the directions of a text add up
                found[part, part] = np.linalg.inv(same / shared)
        return found


def matches_of(context: Features, arm: Features) -> Matches | None:
    """Return what two kinds of features have in common, None where no texts share a space."""
    ours, theirs = (kind.schema if isinstance(kind, Dense) else None for kind in (context, arm))
    if ours is None or theirs is None:
        return None
    spaces = {space: None for space in _texts(ours) if space in _texts(theirs)}
    if not spaces:
        return None
    space = next(iter(spaces))
    texts = min(_TEXT, _texts(ours)[space][0][1])
    known, found = _levels(ours), _levels(theirs)
    levels = sorted(level for level in known if level in found)[: _ALL - texts]

    def side(schema: Schema, places: dict[str, list[int]]) -> Side:
        firsts = [first for first, _ in _texts(schema)[space]]
        directions = [tuple(first + one for first in firsts) for one in range(texts)]
        return Side((*directions, *(tuple(places[one]) for one in levels)), _numbers(schema))

    return Matches(side(ours, known), side(theirs, found), texts)


def _texts(schema: Schema) -> dict[str, list[tuple[int, int]]]:
    """Return the first direction of each text and how many it has, by its space."""
    found: dict[str, list[tuple[int, int]]] = {}
    for column, at in _placed(schema):
        if isinstance(column, Text) and column.space:
            found.setdefault(column.space, []).append((at + 1, column.dim))
    return found


def _levels(schema: Schema) -> dict[str, list[int]]:
    """Return the numbers of each level of categories, by its name."""
    found: dict[str, list[int]] = {}
    for column, at in _placed(schema):
        if isinstance(column, Category | CategorySet) and not column.hashed:
            for number, level in enumerate(column.levels):
                found.setdefault(str(level), []).append(at + 2 + number)
    return found


def _numbers(schema: Schema) -> tuple[int, ...]:
    return tuple(at + column.width - 1 for column, at in _placed(schema) if type(column) is Number)


def _placed(schema: Schema) -> list[tuple[Any, int]]:
    return [(schema[name], span.start) for name, span in schema.spans.items()]
