"""One figure of a bandit: reward so far, what arms earned, and what is expected of some."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fastbandit.arms.box_space import BoxSpace
from fastbandit.exploration import Greedy, ThompsonSampling
from fastbandit.policy import Policy
from fastbandit.runtime.state import State
from fastbandit.score import Candidates
from fastbandit.settings.blueprint import Blueprint
from fastbandit.types import Inputs, Interactions

TOP = 20
"""So many arms are shown at most."""
_DRAWS = 200
_LOW, _HIGH = 0.05, 0.95

Floats = NDArray[np.float64]


class Expected(NamedTuple):
    """The expected rewards of some arms, and the ends of an interval about each."""

    mean: Floats
    low: Floats
    high: Floats


def figure_of(state: State, plan: Blueprint, context: Any = None) -> Any:
    """Return a figure of what a bandit learned from and expects, for a context or the average."""
    policy, history = state.trained("A plot"), state.whole_history
    assert history is not None
    from matplotlib.figure import Figure

    has_rows = not isinstance(policy.arms, BoxSpace) and history.rows is not None
    figure = Figure(figsize=(12 if has_rows else 5, 4), layout="constrained")
    axes = figure.subplots(1, 3 if has_rows else 1, squeeze=False)[0]
    _draw_rewards(axes[0], history)
    if has_rows:
        rows, counts, means = most_chosen(history)
        names = [str(id)[:24] for id in policy.arms.table.ids(rows)]  # type: ignore[union-attr]
        _draw_arms(axes[1], names, counts, means)
        inputs = average_of(history.contexts)
        if context is not None:
            inputs = plan.context.read(np.asarray(context)[None], what="contexts")
        _draw_expected(axes[2], names, expected_of(policy, inputs, rows), context is None)
    return figure


def most_chosen(history: Interactions) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the rows that were chosen most, how often, and what they earned on average."""
    assert history.rows is not None
    rows, where, counts = np.unique(history.rows, return_inverse=True, return_counts=True)
    means = np.bincount(where.ravel(), weights=history.rewards) / counts
    order = np.argsort(-counts, kind="stable")[:TOP]
    return rows[order], counts[order], means[order]


def rewards_so_far(rewards: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the mean reward of about fifty even parts of a history, and where each ends."""
    ends = np.unique(np.linspace(0, len(rewards), min(len(rewards), 50) + 1).astype(np.int64))
    sums = np.concatenate([[0.0], np.cumsum(rewards, dtype=np.float64)])
    return ends[1:], np.diff(sums[ends]) / np.diff(ends)


def average_of(contexts: Inputs) -> Inputs:
    """Return the average of dense contexts; of others the last one, which has no average."""
    if contexts.dense is None:
        return contexts.take(slice(len(contexts) - 1, None))
    return Inputs(dense=contexts.dense.mean(axis=0, keepdims=True).astype(np.float32))


@torch.no_grad()
def expected_of(policy: Policy, context: Inputs, rows: NDArray[np.int64]) -> Expected:
    """Return what arms are expected to earn for one context, and where draws of it lie."""
    wanted = torch.from_numpy(rows).to(policy.model.device)[None]
    every = policy.arms.all()
    some = Candidates(wanted, every.points[:, wanted[0]])
    seeds = np.arange(_DRAWS, dtype=np.uint64)
    embedded = policy.model.embed_contexts(context)

    def scores(exploration: Any, seeds: NDArray[np.uint64]) -> Floats:
        contexts = embedded.expand(len(seeds), *embedded.shape[1:])
        score = exploration.score(policy.model, contexts, seeds=seeds)
        found = policy.model.in_rewards(score.through(policy.arms.to_embedding).of(some))
        return np.asarray(found.cpu().numpy(), dtype=np.float64)

    drawn = scores(ThompsonSampling(), seeds)
    low, high = np.quantile(drawn, (_LOW, _HIGH), axis=0)
    return Expected(scores(Greedy(), seeds[:1])[0], low, high)


def _draw_rewards(axes: Any, history: Interactions) -> None:
    ends, means = rewards_so_far(history.rewards.astype(np.float64))
    axes.plot(ends, means, marker="." if len(ends) < 20 else "")
    axes.set(title="Reward", xlabel="interactions", ylabel="mean reward")


def _draw_arms(axes: Any, names: list[str], counts: Any, means: Floats) -> None:
    places = np.arange(len(names))[::-1]
    axes.barh(places, counts, color="tab:gray", alpha=0.5)
    axes.set_yticks(places, names)
    axes.set(title="Arms chosen most", xlabel="times chosen")
    beside = axes.twiny()
    beside.plot(means, places, "o", color="tab:blue")
    beside.set_xlabel("mean reward", color="tab:blue")


def _draw_expected(axes: Any, names: list[str], found: Expected, is_average: bool) -> None:
    places = np.arange(len(names))[::-1]
    axes.hlines(places, found.low, found.high, color="tab:blue", alpha=0.5)
    axes.plot(found.mean, places, "o", color="tab:blue")
    axes.set_yticks(places, names)
    whose = "the average context" if is_average else "the context"
    axes.set(title=f"Expected for {whose}", xlabel=f"reward, {_LOW:.0%} to {_HIGH:.0%} of draws")
