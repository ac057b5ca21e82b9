"""Learning from a log in a table: what a part of it says about the rest, then all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fastbandit.bandit import Bandit
from fastbandit.cli.log_tables import LogAndArms
from fastbandit.evaluation.report import Evaluation
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.table_files import Column
from fastbandit.learning.candidate_checks import Checks, Comparison, check_candidate
from fastbandit.learning.joining import Interaction

_MOST_HELD_OUT = 20_000
_FEWEST = 20  # fewer than these say nothing
MOST_ARMS = 2**20  # of more, no model of the reward knows the features
ESTIMATORS = ("snips", "dr")
Rows = NDArray[np.int64]
Say = Callable[[str], None]


@dataclass(frozen=True)
class LearnedLog:
    """What was learned from a log, and how well that predicts a part that was held out.

    `judged` is what the policy would have earned there; None where propensities are missing.
    """

    decisions: int
    arms: int
    taken: int
    reward_kind: str
    mean_reward: float
    held_out: str
    checks: Checks
    judged: Evaluation | None

    def to_json(self) -> dict[str, Any]:
        """Return all of it as values that JSON knows."""
        found = asdict(self)
        found["checks"] = self.checks.notes()
        found["judged"] = None if self.judged is None else self.judged.to_json()
        return found

    @property
    def sentences(self) -> list[str]:
        """What to make of it, a sentence each."""
        said = [
            f"{self.decisions:,} decisions among {self.arms:,} arms, of which {self.taken:,} were "
            f"taken; rewards are {self.reward_kind}, {self.mean_reward:.4g} on average",
            *self._on_loss(),
        ]
        if self.judged is None:
            return [*said, "the log has no propensities: what the policy would earn is not known"]
        logged = self.judged.logged
        said.append(f"on those the log's own policy earned {_interval(logged)} a decision")
        said += [
            f"the one learned would have earned {_interval(one)} ({one.title or one.name})"
            for one in self.judged.estimates
        ]
        return [*said, *self.judged.diagnostics.sentences[:1]]

    def _on_loss(self) -> list[str]:
        checks = self.checks
        if checks.loss is None:
            return ["too few decisions to hold some out"]
        what = "squared error" if self.reward_kind == "real" else "log loss"
        said = [f"{what} {checks.loss:.4g} on {checks.held_out:,} decisions, {self.held_out}"]
        others = {
            "a constant": checks.constant,
            "popularity, each arm's shrunken mean": checks.popularity,
        }
        return said + [f"{n}: {_compared(one)}" for n, one in others.items() if one is not None]


def _interval(one: Any) -> str:
    return f"{one.value:.4g} ({one.low:.4g} to {one.high:.4g})"


def _compared(other: Comparison) -> str:
    verdict = "no clear difference"
    if other.high < 0.0:
        verdict = "the bandit predicts better"
    elif other.low > 0.0:
        verdict = "the bandit predicts worse"
    return (
        f"loss {other.loss:.4g}, the bandit's less that {other.difference:+.4g} "
        f"({other.low:+.4g} to {other.high:+.4g}): {verdict}"
    )


class Decisions(Protocol):
    """What a bandit learns from: a log of decisions with its arms, however it came.

    `names` are the arms that were taken, as the bandit knows them; `times` may be None.
    """

    @property
    def contexts(self) -> NDArray[np.float32]: ...

    @property
    def names(self) -> list[Any]: ...

    @property
    def rewards(self) -> NDArray[np.float64]: ...

    @property
    def times(self) -> Column | None: ...

    @property
    def reward_kind(self) -> str: ...

    @property
    def arm_count(self) -> int: ...

    def new_bandit(self, *, preset: str, seed: int) -> Bandit:
        """Return a bandit that knows all arms, and has learned nothing."""
        ...

    def judged(self, bandit: Bandit, rows: Rows, *, seed: int) -> Evaluation | None:
        """Return what a bandit would have earned in some decisions, None where none can say."""
        ...


@dataclass(frozen=True)
class TableDecisions:
    """Decisions in a table, whose arms are those of another one."""

    read: LogAndArms

    @cached_property
    def contexts(self) -> NDArray[np.float32]:
        return self.read.context.encode(self.read.log.contexts, what="contexts")

    @cached_property
    def names(self) -> list[Any]:
        ids = self.read.ids
        return [ids[row] for row in self.read.chosen.tolist()]

    @property
    def rewards(self) -> NDArray[np.float64]:
        return self.read.log.rewards

    @property
    def times(self) -> Column | None:
        return self.read.log.times

    @property
    def reward_kind(self) -> str:
        return self.read.reward_kind

    @property
    def arm_count(self) -> int:
        return self.read.items.rows

    def new_bandit(self, *, preset: str, seed: int) -> Bandit:
        return Bandit(
            arms=self.read.items,
            context=self.read.context,
            reward=self.reward_kind,  # type: ignore[arg-type]
            preset=preset,
            seed=seed,
        )

    def judged(self, bandit: Bandit, rows: Rows, *, seed: int) -> Evaluation | None:
        read, ids = self.read, self.read.ids
        if read.log.propensities is None:
            return None
        rounds = LoggedRounds(
            contexts=self.contexts[rows],
            chosen=read.chosen[rows],
            rewards=read.log.rewards[rows],
            propensities=read.log.propensities[rows],
            vectors=read.arms.features.dense if len(ids) <= MOST_ARMS else None,
            arms=len(ids),
            ids=ids,
        )
        return evaluate(rounds, bandit, estimators=ESTIMATORS, seed=seed)


@dataclass(frozen=True)
class LogLearning:
    """How a bandit learns from a log; `held_out` is the share that judges it first."""

    preset: str = "default"
    seed: int = 0
    held_out: float = 0.2
    say: Say = lambda text: None

    def learn(self, decisions: Decisions) -> tuple[Bandit, LearnedLog]:
        """Return a bandit that has learned all of a log, and what the held-out part says of it."""
        count = len(decisions.contexts)
        learned, unseen, how = self._split(decisions.times, count)
        self.say(f"Learning from {len(learned):,} of {count:,} decisions")
        bandit = self._fitted(decisions, learned)
        checks = _checked(decisions, bandit, unseen)
        judged = decisions.judged(bandit, unseen, seed=self.seed) if len(unseen) else None
        report = LearnedLog(
            decisions=count,
            arms=decisions.arm_count,
            taken=len(set(decisions.names)),
            reward_kind=decisions.reward_kind,
            mean_reward=float(decisions.rewards.mean()),
            held_out=how,
            checks=checks,
            judged=judged,
        )
        if len(unseen):
            self.say("Learning from all of them")
            bandit = self._fitted(decisions, np.arange(count))
        return bandit, report

    def _fitted(self, decisions: Decisions, rows: Rows) -> Bandit:
        names = decisions.names
        return decisions.new_bandit(preset=self.preset, seed=self.seed).fit(
            contexts=decisions.contexts[rows],
            arms=[names[row] for row in rows.tolist()],
            rewards=decisions.rewards[rows],
        )

    def _split(self, times: Column | None, count: int) -> tuple[Rows, Rows, str]:
        """Return the rows to learn from, those held out, and how these were picked."""
        size = min(_MOST_HELD_OUT, int(count * self.held_out))
        order = None if times is None else _in_time(times)
        how = "the last ones"
        if order is None:
            order, how = np.random.default_rng(self.seed).permutation(count), "picked at random"
        size = size if size >= _FEWEST else 0
        return np.sort(order[: count - size]), np.sort(order[count - size :]), how


def _checked(decisions: Decisions, bandit: Bandit, unseen: Rows) -> Checks:
    """Measure a bandit on decisions that it has not seen, or on the first where there are none."""
    rows = unseen if len(unseen) else np.arange(min(200, len(decisions.contexts)))
    names, contexts = decisions.names, decisions.contexts[rows].tolist()
    rewards = decisions.rewards[rows].tolist()
    interactions = [
        Interaction(0, n, 0, context, names[row], reward)
        for n, (context, row, reward) in enumerate(
            zip(contexts, rows.tolist(), rewards, strict=True)
        )
    ]
    return check_candidate(bandit, None, interactions, held_out=len(unseen))


def _in_time(times: Column) -> Rows | None:
    """Return the order of times, None where they are neither numbers nor ISO dates."""
    if times.dtype.kind in "fiuM":
        return np.argsort(times, kind="stable")
    texts = times.astype(str).tolist()
    for read in (float, lambda text: datetime.fromisoformat(text.strip()).timestamp()):
        try:
            return np.argsort(np.array([read(text) for text in texts]), kind="stable")
        except ValueError:
            continue
    return None
