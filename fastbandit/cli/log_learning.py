"""Learning from a log in a table: what a part of it says about the rest, then all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

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
_MOST_ARMS = 2**20  # of more, no model of the reward knows the features
_ESTIMATORS = ("snips", "dr")
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


@dataclass(frozen=True)
class LogLearning:
    """How a bandit learns from a log; `held_out` is the share that judges it first."""

    preset: str = "default"
    seed: int = 0
    held_out: float = 0.2
    say: Say = lambda text: None

    def learn(self, read: LogAndArms) -> tuple[Bandit, LearnedLog]:
        """Return a bandit that has learned all of a log, and what the held-out part says of it."""
        contexts = read.context.encode(read.log.contexts, what="contexts")
        learned, unseen, how = self._split(read.log.times, len(contexts))
        self.say(f"Learning from {len(learned):,} of {len(contexts):,} decisions")
        bandit = self._fitted(read, contexts, learned)
        checks, judged = self._judged(read, bandit, contexts, unseen)
        report = LearnedLog(
            decisions=len(contexts),
            arms=read.items.rows,
            taken=len(np.unique(read.chosen)),
            reward_kind=read.reward_kind,
            mean_reward=float(read.log.rewards.mean()),
            held_out=how,
            checks=checks,
            judged=judged,
        )
        if len(unseen):
            self.say("Learning from all of them")
            bandit = self._fitted(read, contexts, np.arange(len(contexts)))
        return bandit, report

    def _fitted(self, read: LogAndArms, contexts: NDArray[np.float32], rows: Rows) -> Bandit:
        bandit = Bandit(
            arms=read.items,
            context=read.context,
            reward=read.reward_kind,  # type: ignore[arg-type]
            preset=self.preset,
            seed=self.seed,
        )
        ids = read.ids
        return bandit.fit(
            contexts=contexts[rows],
            arms=[ids[row] for row in read.chosen[rows].tolist()],
            rewards=read.log.rewards[rows],
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

    def _judged(
        self, read: LogAndArms, bandit: Bandit, contexts: NDArray[np.float32], unseen: Rows
    ) -> tuple[Checks, Evaluation | None]:
        ids, rows = read.ids, unseen if len(unseen) else np.arange(min(200, len(contexts)))
        interactions = [
            Interaction(0, n, 0, context, ids[arm], reward)
            for n, (context, arm, reward) in enumerate(
                zip(
                    contexts[rows].tolist(),
                    read.chosen[rows].tolist(),
                    read.log.rewards[rows].tolist(),
                    strict=True,
                )
            )
        ]
        checks = check_candidate(bandit, None, interactions, held_out=len(unseen))
        if read.log.propensities is None or not len(unseen):
            return checks, None
        rounds = LoggedRounds(
            contexts=contexts[unseen],
            chosen=read.chosen[unseen],
            rewards=read.log.rewards[unseen],
            propensities=read.log.propensities[unseen],
            vectors=read.arms.features.dense if len(ids) <= _MOST_ARMS else None,
            arms=len(ids),
            ids=ids,
        )
        return checks, evaluate(rounds, bandit, estimators=_ESTIMATORS, seed=self.seed)


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
