"""What contexts and arms have in common: the directions of texts that lie in one space.

A product of two coordinates, one of the context and one of the arm, says how alike their texts are
in one direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastbandit.features.kinds import Dense
from fastbandit.features.schema import Schema
from fastbandit.features.text_columns import Text
from fastbandit.reward.context_features import principal_directions
from fastbandit.types import Features, Floats

_SHARE = 0.75  # so many matches for each coordinate that a side has without them
_NEVER = 1e6  # the precision of weights of products that do not match
_SAME, _APART = 0.5, 0.25  # deviations of what weights have in common, and of each of them


@dataclass(frozen=True)
class Matches:
    """The numbers of contexts, and of arms, that hold each direction: those of all their texts."""

    contexts: tuple[tuple[int, ...], ...]
    arms: tuple[tuple[int, ...], ...]

    def prior_precision(self, size: int) -> Floats:
        """Return the precision of the weights of `size` products: those that match are alike."""
        count = len(self.contexts)
        found = np.diag(np.full(size, _NEVER))
        alike = np.full((count, count), _SAME**2) + np.eye(count) * _APART**2
        found[:count, :count] = count * np.linalg.inv(alike)  # the directions of a text add up
        return found


def matches_of(context: Features, arm: Features, size: int) -> Matches | None:
    """Return what two kinds of features have in common, None where no texts share a space.

    A side has `size` coordinates besides.
    """
    ours, theirs = (kind.schema if isinstance(kind, Dense) else None for kind in (context, arm))
    if ours is None or theirs is None:
        return None
    known, found = _texts(ours), _texts(theirs)
    space = next((space for space in known if space in found), None)
    if space is None:
        return None
    (_, dim), *_ = known[space]
    count = min(dim, int(_SHARE * size))
    sides = ([first for first, _ in texts[space]] for texts in (known, found))
    directions = (tuple(tuple(at + n for at in firsts) for n in range(count)) for firsts in sides)
    return Matches(*directions) if count else None


def matched_directions(
    matches: tuple[tuple[int, ...], ...], numbers: Floats, scales: Floats, size: int
) -> Floats:
    """Return a map to matches, then to principal directions of what is left: (<= size, columns).

    `numbers` are standardised; directions of texts differ as they did before, by their `scales`.
    """
    rows = np.zeros((len(matches), numbers.shape[1]))
    for row, columns in enumerate(matches):
        rows[row, list(columns)] = scales[list(columns)]
    rows /= max(float(np.sqrt(np.square(rows).sum(1).mean())), 1e-9)
    used = sorted({column for columns in matches for column in columns})
    left = numbers.copy()
    left[:, used] = 0.0
    count = min(size - len(rows), numbers.shape[1] - len(used))
    return np.concatenate([rows, principal_directions(left, count).T]) if count > 0 else rows


def text_spans(kind: Features) -> tuple[slice, ...]:
    """Return the numbers of each text that lies in a space."""
    schema = kind.schema if isinstance(kind, Dense) else None
    every = [] if schema is None else _texts(schema).values()
    return tuple(slice(first, first + dim) for texts in every for first, dim in texts)


def _texts(schema: Schema) -> dict[str, list[tuple[int, int]]]:
    """Return the first direction of each text and how many it has, by its space."""
    found: dict[str, list[tuple[int, int]]] = {}
    for name, span in schema.spans.items():
        column = schema[name]
        if isinstance(column, Text) and column.space:
            found.setdefault(column.space, []).append((span.start + 1, column.dim))
    return found
