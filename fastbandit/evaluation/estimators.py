"""Estimators of what a policy would have earned: each a formula over columns of a log.

Notation: round i has context x, arm a, reward r and propensity p; the policy would have taken
that arm with probability π(a|x). Its weight is w = π(a|x) / p. A model of the reward says
q(x, a); Q(x) = Σ_b π(b|x) q(x, b) is what it expects of the policy. All formulas are those of
Saito et al., "Open Bandit Dataset and Pipeline" (2021), where they list them.

An estimator is declared here once, and known by its name from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from fastbandit.declaration import info_of, known_name, part, setting
from fastbandit.errors import SettingError
from fastbandit.evaluation.clusters import can_make_clusters, clusters_of, logging_shares
from fastbandit.evaluation.diagnostics import cluster_warning, diagnose
from fastbandit.evaluation.expected import Expected
from fastbandit.evaluation.rounds import Floats, LoggedRounds
from fastbandit.evaluation.sparse_policy import SparsePolicy

Need = Literal["weights", "reward model", "clusters"]
"""What an estimator rests on: importance weights, a fitted model, or clusters of arms."""


# -- roles


@dataclass(frozen=True, eq=False)
class PreparedRounds:
    """A log, the policy to judge on it, and the columns that estimators are made of.

    `target` is π(a|x) of the logged arms; `weights` are w, not clipped.
    """

    log: LoggedRounds
    policy: SparsePolicy
    target: Floats
    weights: Floats
    fit: Callable[[], Expected]
    seed: int

    @property
    def rewards(self) -> Floats:
        return np.asarray(self.log.rewards)

    @cached_property
    def expected(self) -> Expected:
        """What a model of the reward expects; it is fitted when it is first asked for."""
        return self.fit()

    def clipped(self, clip: float | None) -> Floats:
        """Return the weights, at most `clip` each."""
        return self.weights if clip is None else np.minimum(self.weights, clip)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each round adds to an estimate: Σ tops / Σ bottoms, or the mean of tops alone.

    `clip` is where weights were cut; `notes` say what the estimate supposes.
    """

    tops: Floats
    bottoms: Floats | None = None
    clip: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The estimate; NaN where no round says anything."""
        if self.bottoms is None:
            return float(self.tops.mean())
        below = float(self.bottoms.sum())
        return float(self.tops.sum()) / below if below > 0.0 else float("nan")

    @property
    def influence(self) -> Floats:
        """How each round moves the estimate: terms whose mean is the estimate.

        By the delta method, V + (top - V bottom) / mean(bottom) for a ratio V.
        """
        if self.bottoms is None:
            return self.tops
        value, below = self.value, float(self.bottoms.mean())
        return value + (self.tops - value * self.bottoms) / below


@runtime_checkable
class Estimator(Protocol):
    """Says what each round adds to the estimate of a policy's value.

    Any class of this shape that is declared with `part("estimator", name=...)` is one. `title`
    is its name in tables.
    """

    title: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]]

    def contributions(self, rounds: PreparedRounds) -> Contributions: ...


# -- estimators


@part("estimator", name="replay")
class Replay:
    """Σ π r / Σ π: the mean reward of the rounds in which the policy takes the logged arm.

    Li, Chu, Langford and Wang, "Unbiased offline evaluation of contextual-bandit-based news
    article recommendation algorithms" (2011). Needs a log in which every arm was equally
    likely. A policy that draws counts in a round as often as it would have matched.
    """

    title: ClassVar[str] = "Replay"
    needs: ClassVar[tuple[Need, ...]] = ()

    def contributions(self, rounds: PreparedRounds) -> Contributions:
        note = "replay supposes that every arm was equally likely, and here they were not"
        notes = () if rounds.log.is_uniform else (note,)
        return Contributions(rounds.target * rounds.rewards, rounds.target, notes=notes)


@part("estimator", name="ips")
class IPS:
    """mean(w r): unbiased where the log had every arm that the policy takes.

    Horvitz and Thompson (1952); Strehl, Langford, Li and Kakade, "Learning from logged implicit
    exploration data" (2010).
    """

    title: ClassVar[str] = "IPS"
    needs: ClassVar[tuple[Need, ...]] = ("weights",)
    clip: float | None = setting(default=None, above=0)

    def contributions(self, rounds: PreparedRounds) -> Contributions:
        return Contributions(rounds.clipped(self.clip) * rounds.rewards, clip=self.clip)


@part("estimator", name="snips")
class SNIPS:
    """Σ w r / Σ w: a little biased, far less noisy, and never beyond the rewards seen.

    Swaminathan and Joachims, "The self-normalized estimator for counterfactual learning" (2015).
    """

    title: ClassVar[str] = "SNIPS"
    needs: ClassVar[tuple[Need, ...]] = ("weights",)
    clip: float | None = setting(default=None, above=0)

    def contributions(self, rounds: PreparedRounds) -> Contributions:
        weights = rounds.clipped(self.clip)
        return Contributions(weights * rounds.rewards, weights, clip=self.clip)


@part("estimator", name="dm")
class DirectMethod:
    """mean(Q): as right as the model of the reward is.

    Beygelzimer and Langford, "The offset tree for learning with partial labels" (2009).
    """

    title: ClassVar[str] = "Direct method"
    needs: ClassVar[tuple[Need, ...]] = ("reward model",)

    def contributions(self, rounds: PreparedRounds) -> Contributions:
        note = "the interval of the direct method knows nothing of the model's own error"
        return Contributions(rounds.expected.of_policy, notes=(note,))


@part("estimator", name="dr")
class DR:
    """mean(Q + w (r - q)): right where the propensities or the model are.

    Dudík, Langford and Li, "Doubly robust policy evaluation and learning" (2011).
    """

    title: ClassVar[str] = "Doubly robust"
    needs: ClassVar[tuple[Need, ...]] = ("weights", "reward model")
    clip: float | None = setting(default=None, above=0)

    def contributions(self, rounds: PreparedRounds) -> Contributions:
        expected, weights = rounds.expected, rounds.clipped(self.clip)
        left = rounds.rewards - expected.logged
        return Contributions(expected.of_policy + weights * left, clip=self.clip)


@part("estimator", name="switch")
class SwitchDR:
    """mean(Q + w 1[w <= threshold] (r - q)): the model alone where weights are large.

    Wang, Agarwal and Dudík, "Optimal and adaptive off-policy evaluation in contextual bandits"
    (2017).
    """

    title: ClassVar[str] = "SWITCH"
    needs: ClassVar[tuple[Need, ...]] = ("weights", "reward model")
    threshold: float = setting(default=10.0, above=0)
    clip: float | None = setting(default=None, above=0)

    def contributions(self, rounds: PreparedRounds) -> Contributions:
        expected, weights = rounds.expected, rounds.clipped(self.clip)
        trusted = np.where(weights <= self.threshold, weights, 0.0)
        left = rounds.rewards - expected.logged
        notes = [f"SWITCH trusts the model alone where weights are above {self.threshold:g}"]
        notes += cut_notes("SWITCH", rounds.policy)
        return Contributions(expected.of_policy + trusted * left, None, self.clip, tuple(notes))


@part("estimator", name="mips")
class MIPS:
    """mean(w r) with w = π(e|x) / π₀(e|x), where e is the cluster of the arm's embedding.

    Saito and Joachims, "Off-policy evaluation for large action spaces via embeddings" (2022).
    Unbiased where an arm's reward depends on its cluster alone. `clusters` is a number of them,
    or one for each arm; by default k-means makes some of the arms' vectors. `logging` is the
    policy that made the log, where it is known.
    """

    title: ClassVar[str] = "MIPS (clusters)"
    needs: ClassVar[tuple[Need, ...]] = ("clusters",)
    clusters: Any = None
    logging: SparsePolicy | None = None

    def contributions(self, rounds: PreparedRounds) -> Contributions:
        log = rounds.log
        found = clusters_of(log, self.clusters, seed=rounds.seed)
        target = rounds.policy.probability_within(found, log.chosen, np.bincount(found))
        weights = target / logging_shares(log, found, logging=self.logging)
        warning = cluster_warning(diagnose(weights))
        return Contributions(weights * rounds.rewards, notes=(warning,) if warning else ())


def cut_notes(what: str, policy: SparsePolicy) -> list[str]:
    """Say what it means to cut weights that rest on a few draws of the policy."""
    if policy.draws is None:
        return []
    return [
        f"the weights that {what} cuts are those of these draws: larger and rarer than those of "
        f"the policy's probabilities"
    ]


# -- by name


def declared_estimators() -> dict[str, type[Estimator]]:
    """Return the estimators that are declared here, by name, in the order of this page."""
    infos = ((info_of(kind), kind) for kind in list(globals().values()))
    return {info.name: kind for info, kind in infos if info and info.role == "estimator"}


def name_of(estimator: Any) -> str:
    info = info_of(type(estimator))
    if info is None or info.role != "estimator":
        raise SettingError(
            f"An estimator needs to be a name, or an object of a class that is declared with "
            f"part('estimator', name=...): got {estimator!r}. Use one of "
            f"{', '.join(declared_estimators())}, or declare it."
        )
    return info.name


def estimators_of(asked: Sequence[str | Estimator] | str | Estimator) -> tuple[Estimator, ...]:
    """Return estimators by names or as they are; what is asked for twice counts once."""
    known, found = declared_estimators(), dict[str, Any]()
    for one in asked if isinstance(asked, Sequence) and not isinstance(asked, str) else [asked]:
        if isinstance(one, str):
            known_name("estimator", one, tuple(known), or_object=True)
        made = known[one]() if isinstance(one, str) else one
        if found.setdefault(name_of(made), made) != made:
            raise SettingError(
                f"Estimators need a name each: got {made!r} beside {found[name_of(made)]!r}. "
                f"Evaluate once with each of them."
            )
    return tuple(found.values())


def possible_estimators(log: LoggedRounds, *, has_clusters: bool = False) -> tuple[Estimator, ...]:
    """Return all estimators that a log allows, with their defaults."""
    has_clusters = has_clusters or (log.vectors is not None and can_make_clusters())
    kinds = declared_estimators().values()
    return tuple(kind() for kind in kinds if has_clusters or "clusters" not in kind.needs)
