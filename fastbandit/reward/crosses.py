"""Products of context and arm: the few directions of both whose products tell rewards best.

All products of principal directions of contexts and of arms are regressed on at once, by least
squares, with one prior, whose width is the likeliest. The weights are a matrix; its leading
singular vectors are pairs of directions, one of contexts and one of arms, that say nearly as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fastbandit.reward.context_features import principal_directions
from fastbandit.types import Floats

SAMPLE = 16_384  # interactions that directions are taken from, the newest
_MOST = 24  # principal directions of a side: a regression has the square of that many products
_FREE = 1e-6
_PENALTIES = np.geomspace(0.1, 1000.0, 9)  # of products of length 1, in noise of variance 1
_STRONG = 5.0  # so much evidence, in nats, makes products worth having
_SHARE = 0.75  # so many of the directions of a side belong to a pair
_NEVER = 1e6  # the precision of weights of products of directions that are no pair
_COMMON, _EACH = 0.25, 0.1  # deviations of weights of pairs: of all alike, of each


@dataclass(frozen=True, eq=False)
class Crosses:
    """Maps from numbers to directions (columns, size), of which the first `count` are in pairs.

    The product of a pair is what it adds to rewards, or to log odds, as least squares say.
    """

    contexts: Floats
    arms: Floats
    count: int

    def prior_precision(self, size: int) -> Floats:
        """Return the precision of the weights of `size` products about 1: nearly alike."""
        found = np.diag(np.full(size, _NEVER))
        alike = np.full((self.count, self.count), _COMMON**2) + np.eye(self.count) * _EACH**2
        found[: self.count, : self.count] = np.linalg.inv(alike)
        return found

    @staticmethod
    def find(
        contexts: Any,
        arms: Any,
        rewards: Floats,
        weights: Floats,
        *,
        size: int,
        catalogue: Any,
        precisions: tuple[float, float],
        is_binary: bool,
    ) -> Crosses | None:
        """Find pairs for interactions: rows of numbers, dense or sparse; None where none help.

        `catalogue` is what arms there are, `precisions` are those of the prior of the weights that
        contexts and arms have without products.
        """
        mean = float(np.average(rewards, weights=weights))
        steep = mean * (1.0 - mean) if is_binary else 1.0
        if steep <= 0.0:
            return None
        ours, c = _principal(contexts, contexts)
        theirs, a = _principal(catalogue, arms)
        lengths = [max(float(np.sqrt(np.square(part).sum(1).mean())), _FREE) for part in (c, a)]
        products = (c[:, :, None] * a[:, None, :]).reshape(len(c), -1) / (lengths[0] * lengths[1])
        z = np.concatenate([c, a, np.ones((len(c), 1)), products], axis=1)
        plain = c.shape[1] + a.shape[1] + 1
        loose = [np.full(p.shape[1], k / steep) for p, k in zip((c, a), precisions, strict=True)]
        found = _likeliest(z, rewards, weights, np.concatenate([*loose, np.full(1, _FREE)]))
        if found is None:
            return None
        matrix = found[plain:].reshape(c.shape[1], a.shape[1]) / (lengths[0] * lengths[1] * steep)
        left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
        count = min(int(_SHARE * size), len(sizes))
        roots = np.sqrt(sizes[:count])
        alone = found[c.shape[1] : plain - 1, None] / steep  # what arms are worth without products
        more = size - count
        return Crosses(
            _filled(ours, left[:, :count] * roots, np.zeros((c.shape[1], 0)), more),
            _filled(theirs, right[:count].T * roots, alone, more),
            count,
        )


def _principal(rows: Any, numbers: Any) -> tuple[Floats, Floats]:
    """Return the principal directions of rows, and numbers along them."""
    directions = principal_directions(rows, min(_MOST, rows.shape[1]))
    return directions, np.asarray(numbers @ directions)


def _filled(directions: Floats, pairs: Floats, alone: Floats, more: int) -> Floats:
    """Return a map to pairs, to one direction for all else, and to principal directions."""
    rest = np.eye(directions.shape[1])[:, : max(0, more - alone.shape[1])]
    return np.asarray(directions @ np.concatenate([pairs, alone, rest], axis=1))


def _likeliest(z: Floats, rewards: Floats, weights: Floats, loose: Floats) -> Floats | None:
    """Return the weights under the likeliest prior of products; None where they are worth none.

    `z`, products last, is changed.
    """
    roots, total = np.sqrt(weights), float(weights.sum())
    z *= roots[:, None]
    gram, moment, squares = z.T @ z, z.T @ (roots * rewards), float(weights @ rewards**2)
    best, centre = -np.inf, None
    for penalty in (None, *_PENALTIES):
        size = len(loose) if penalty is None else len(moment)
        prior = np.concatenate([loose, np.full(size - len(loose), penalty or 1.0)])
        root = np.linalg.cholesky(gram[:size, :size] + np.diag(prior))
        half = np.linalg.solve(root, moment[:size])
        noise = max(squares - float(half @ half), _FREE * total) / total
        evidence = 0.5 * np.log(prior).sum() - np.log(np.diag(root)).sum()
        evidence -= 0.5 * total * np.log(noise)
        if penalty is None:
            best = evidence + _STRONG
        elif evidence > best:
            best, centre = evidence, np.linalg.solve(root.T, half)
    return centre
