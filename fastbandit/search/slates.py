"""Slates: k arms that are wanted and differ from one another, out of one search's candidates.

Maximal marginal relevance (Carbonell and Goldstein, "The use of MMR, diversity-based reranking
for reordering documents and producing summaries", 1998), with distances between the arms'
coordinates in the place of text similarity: the arm that is wanted most, then again and again
the one with the highest (1 - diversity) x score + diversity x distance to the nearest arm taken.
Scores and distances are shares of their range among the candidates of a context.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import SettingError

_CANDIDATES = 5
"""So many arms for each place of a slate are looked for."""


def candidates_for(k: int, diversity: float) -> int:
    """Return how many arms a search is to find for a slate of k."""
    return k if k == 1 or check_diversity(diversity) == 0.0 else _CANDIDATES * k


def check_diversity(diversity: Any) -> float:
    is_number = isinstance(diversity, int | float | np.number) and not isinstance(diversity, bool)
    if not is_number or not 0.0 <= diversity <= 1.0:
        raise SettingError(
            f"The diversity of a slate needs to be from 0 to 1: got {diversity!r}. Use 0 for the "
            f"arms wanted most, 0.3 for some that differ more."
        )
    return float(diversity)


def pick_apart(
    scores: NDArray[np.floating[Any]],
    points: NDArray[np.floating[Any]],
    *,
    k: int,
    diversity: float,
) -> NDArray[np.int64]:
    """Return the places of k candidates in the order they are picked: (B, k).

    Candidates have scores (B, P), best first, -inf where a place is empty, and coordinates
    (B, P, D). Empty places are picked once there is nothing else.
    """
    is_arm = np.isfinite(scores)
    wanted = _shares(scores.astype(np.float64), is_arm)
    steps = np.linalg.norm(points - points[:, :1], axis=2)
    farthest = np.where(is_arm, steps, 0.0).max(axis=1)  # from the one wanted most
    widest = np.maximum(2.0 * farthest, 1e-30)
    contexts = np.arange(len(scores))
    picked = np.zeros((len(scores), k), dtype=np.int64)  # the first is the one wanted most
    gaps = np.full(scores.shape, np.inf)
    is_eligible = is_arm.copy()
    for place in range(1, k):
        last = picked[:, place - 1]
        is_eligible[contexts, last] = False
        steps = points - points[contexts, last][:, None]
        gaps = np.minimum(gaps, np.linalg.norm(steps, axis=2) / widest[:, None])
        merit = (1.0 - diversity) * wanted + diversity * gaps
        picked[:, place] = np.where(is_eligible, merit, -np.inf).argmax(axis=1)
        spent = ~is_eligible.any(axis=1)
        picked[spent, place] = np.minimum(is_arm[spent].sum(axis=1), scores.shape[1] - 1)
    return picked


def _shares(scores: NDArray[np.float64], is_arm: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Turn the scores of a context into shares of their range."""
    low = np.where(is_arm, scores, np.inf).min(axis=1, keepdims=True)
    rises = np.where(is_arm, scores - low, 0.0)
    return np.asarray(rises / np.maximum(rises.max(axis=1, keepdims=True), 1e-30))
