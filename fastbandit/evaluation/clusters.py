"""Clusters of arms for the marginalised estimator, and how likely the log made each."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from fastbandit.errors import InputError, SettingError, ShapeError
from fastbandit.evaluation.reward_models import Columns
from fastbandit.evaluation.rounds import Floats, LoggedRounds, Rows
from fastbandit.evaluation.sparse_policy import CHUNK, SparsePolicy
from fastbandit.packages import needed

_MOST_CLUSTERS = 1_000
_ROUNDS_A_CLUSTER = 50
_LOWEST = 0.1
_MOST_FEATURES = 64


def clusters_of(rounds: LoggedRounds, clusters: Any = None, *, seed: int = 0) -> Rows:
    """Return the cluster of each arm: as given, or by k-means on the arms' vectors.

    `clusters` is one number for each arm, or how many clusters to make.
    """
    if clusters is not None and np.ndim(clusters) > 0:
        given = np.asarray(clusters)
        if given.shape != (rounds.arms,):
            raise ShapeError(
                f"Clusters need one number for each of the {rounds.arms} arms: got shape "
                f"{given.shape}. Give all arms a cluster."
            )
        return np.unique(given, return_inverse=True)[1].reshape(-1).astype(np.int64)
    if rounds.vectors is None:
        raise InputError(
            "The estimator mips needs vectors of the arms or clusters=: got neither. Give the "
            "log vectors= (a table of the arms with --arms), or one cluster for each arm."
        )
    if clusters is None:
        most = min(_MOST_CLUSTERS, max(2, len(rounds) // _ROUNDS_A_CLUSTER))
        clusters = min(most, round(np.sqrt(rounds.arms)))
    if isinstance(clusters, bool) or not 1 <= int(clusters) <= rounds.arms:
        raise SettingError(
            f"The number of clusters needs to be from 1 to the {rounds.arms} arms: got "
            f"{clusters!r}. Leave it out for about the root of that."
        )
    faiss = needed("faiss", what="Making clusters of arms")
    columns = Columns.of(rounds.vectors, most=rounds.vectors.shape[1], seed=seed)
    points = np.ascontiguousarray(columns.with_one(rounds.vectors)[:, 1:])
    shape = (points.shape[1], int(clusters))
    means = faiss.Kmeans(*shape, niter=10, seed=seed + 1, min_points_per_centroid=1)
    means.train(points)
    return np.asarray(means.index.search(points, 1)[1][:, 0], dtype=np.int64)


def can_make_clusters() -> bool:
    return find_spec("faiss") is not None


def logging_shares(
    rounds: LoggedRounds, clusters: Rows, *, logging: SparsePolicy | None = None
) -> Floats:
    """Return how likely the log took some arm of the cluster it took, in each round.

    The logging policy says so where it is known, sizes where every arm was equally likely; else
    it is a linear regression of "this cluster" on the context, which sums to 1 over the clusters.
    It stays above a tenth of the cluster's share in the log and above the arm's own propensity.
    """
    taken, sizes = clusters[rounds.chosen], np.bincount(clusters)
    if logging is not None:
        return np.maximum(logging.probability_within(clusters, rounds.chosen, sizes), 1e-12)
    if rounds.is_uniform:
        return np.asarray(sizes[taken] / rounds.arms)
    return np.maximum(_regressed(rounds, taken, len(sizes)), rounds.propensities)


def _regressed(rounds: LoggedRounds, taken: Rows, count: int) -> Floats:
    """Return the share of the cluster taken, as a linear function of the context."""
    columns = Columns.of(rounds.contexts, most=_MOST_FEATURES, seed=0)
    width = 1 + columns.axes.shape[1]
    curves, slopes = np.diag(np.ones(width)), np.zeros((width, count))
    curves[0, 0] = 0.0  # the intercept is free
    for start in range(0, len(rounds), CHUNK):
        part = slice(start, start + CHUNK)
        ours = columns.with_one(rounds.contexts[part]).astype(np.float64)
        curves += ours.T @ ours
        for column in range(width):
            slopes[column] += np.bincount(taken[part], ours[:, column], count)
    weights = np.linalg.solve(curves, slopes).T  # (clusters, width)
    found = np.empty(len(rounds))
    for start in range(0, len(rounds), CHUNK):
        part = slice(start, start + CHUNK)
        features = columns.with_one(rounds.contexts[part])
        found[part] = np.einsum("nd,nd->n", features, weights[taken[part]])
    shares = np.bincount(taken, minlength=count) / len(rounds)
    return np.clip(found, _LOWEST * shares[taken], 1.0)
