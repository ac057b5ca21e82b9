"""Learning from a log whose actions came with each request, as a service learns such arms.

An action has the features with which it will be served: its id is among them (`with_id`). The
catalogue has each id with the features that it had last. By features, an action with others
is learned as one that came with its request (`fastbandit.arms.offers`); by id, it is the same arm,
with weights of its own. Which of the two predicts rewards better that it has not seen is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.adapters.action_logs import ActionLog
from fastbandit.adapters.vowpal_wabbit_arguments import Arguments
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.offers import offer_name, with_id
from fastbandit.bandit import Bandit
from fastbandit.cli.log_learning import ESTIMATORS, MOST_ARMS, LearnedLog, LogLearning, Rows
from fastbandit.evaluation.report import Evaluation
from fastbandit.evaluation.rounds import LoggedRounds
from fastbandit.evaluation.run import evaluate
from fastbandit.evaluation.sparse_policy import SparsePolicy
from fastbandit.evaluation.table_files import Column
from fastbandit.features.columns import Ignored
from fastbandit.features.schema import Schema
from fastbandit.learning.arm_knowledge import MOST_IDS
from fastbandit.progress import Progress, silent
from fastbandit.reward.arm_effects_posterior import ArmEffectsPosterior
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.offered_arms import Offer
from fastbandit.storage.arm_changes import apply_offers
from fastbandit.storage.events import Arm

_DRAWS = 200
_REMEMBERED = 512  # sets of offered actions


@dataclass(frozen=True, eq=False)
class ActionDecisions:
    """Decisions among actions that came with them; features and schemas as a service has them.

    `settings` are those of the service that takes over; `arguments` say which namespaces count.
    """

    log: ActionLog
    settings: Mapping[str, Any] = field(default_factory=dict)
    arguments: Arguments = field(default_factory=Arguments)
    by_id: bool = False
    progress: Progress = silent

    @property
    def known_by(self) -> str:
        """What arms are told apart by."""
        return "ids" if self.by_id or self.arm is None else "features"

    # -- what it says of contexts, arms and rewards

    @cached_property
    def context(self) -> Schema:
        return self._schema_of(self.log.contexts, what="contexts")

    @cached_property
    def arm(self) -> Schema | None:
        return self._schema_of(self.features, what="arms") if any(self.log.features) else None

    @cached_property
    def features(self) -> list[dict[str, Any]]:
        """Those of each action, as a service reads them: with any names, its id among them."""
        both = zip(self.log.ids, self.log.features, strict=True)
        return [with_id(id, features) for id, features in both]

    def _schema_of(self, rows: Sequence[Mapping[str, Any]], *, what: str) -> Schema:
        """Return a schema that takes any names, and has learned to read those of some rows."""
        names = dict.fromkeys(name for row in rows for name in row)
        unused = [Ignored(name) for name in names if not self.arguments.learns_from(name)]
        return Schema((*unused, *Schema.open().columns)).grown(rows, what=what)

    @property
    def reward_kind(self) -> str:
        """Binary where no other reward can come: clients of Personalizer may send any."""
        default = self.settings.get("reward.default", 0.0)
        sums = self.settings.get("reward.combine") == "sum"
        may_be_any = sums or self.settings.get("personalizer.enabled", False)
        is_binary = np.isin(self.log.rewards, (0.0, 1.0)).all() and default in (0.0, 1.0)
        return "binary" if is_binary and not may_be_any else "real"

    # -- what a bandit learns

    @cached_property
    def contexts(self) -> NDArray[np.float32]:
        return self.context.encode(self.log.contexts, what="contexts")

    @cached_property
    def names(self) -> list[Any]:
        named = [
            id if self.by_id or self._last[id] == row else offer_name(id, self.features[row])
            for row, id in enumerate(self.log.ids)
        ]
        return [named[row] for row in self.log.chosen.tolist()]

    @property
    def rewards(self) -> NDArray[np.float64]:
        return self.log.rewards

    @property
    def times(self) -> Column | None:
        """Those of the log where all lines have one, else their order."""
        times = self.log.times
        if any(one is None for one in times) or len({type(one) for one in times}) > 1:
            return np.arange(len(times))
        return np.array(times)

    @property
    def arm_count(self) -> int:
        return len(self._last)

    @cached_property
    def _last(self) -> dict[str, int]:
        """The row of each id as it was offered last."""
        found: dict[str, int] = {}
        for offered in self.log.offered:
            for row in offered:
                found[self.log.ids[row]] = row
        return found

    def new_bandit(self, *, preset: str, seed: int) -> Bandit:
        last = list(self._last.values())
        rows = [self.features[row] for row in last]
        bandit = Bandit(
            arms=None if self.arm is None else self.arm.table(rows),
            ids=list(self._last),
            context=self.context,
            reward=self.reward_kind,  # type: ignore[arg-type]
            exploration=self.settings.get("select.exploration", "ts"),
            posterior=ArmEffectsPosterior(own_weights=True) if self.by_id else "auto",
            embed_ids=self.by_id,
            preset=preset,
            seed=seed,
        )
        catalogue = bandit.policy.arms
        assert isinstance(catalogue, Catalogue)
        apply_offers(bandit, self._offers(), known=catalogue.table)
        return bandit

    def _offers(self) -> list[Arm]:
        """Return the arms that were taken with other features than those they have last."""
        both = zip(self.names, self.log.chosen.tolist(), strict=True)
        rows = {name: row for name, row in both if name not in self._last}
        return [Arm(name, self.features[row]) for name, row in rows.items()]

    # -- what it would have earned

    def judged(self, bandit: Bandit, rows: Rows, *, seed: int) -> Evaluation | None:
        rounds, known = self.rounds(rows)
        policy = self._policy(bandit.freeze(), rows, known)
        return evaluate(
            rounds, policy, estimators=("ips", *ESTIMATORS), seed=seed, progress=self.progress
        )

    def rounds(self, rows: Rows) -> tuple[LoggedRounds, dict[int, int]]:
        """Return decisions as rounds, and the row in them of each row of the log's actions."""
        offered = [self.log.offered[row] for row in rows.tolist()]
        known = {row: n for n, row in enumerate(dict.fromkeys(r for some in offered for r in some))}
        rounds = LoggedRounds(
            contexts=self.contexts[rows],
            chosen=np.array([known[row] for row in self.log.chosen[rows].tolist()]),
            rewards=self.rewards[rows],
            propensities=self.log.propensities[rows],
            vectors=self._vectors(list(known)),
            arms=len(known),
        )
        return rounds, known

    def _vectors(self, rows: Sequence[int]) -> NDArray[np.float32] | None:
        if self.arm is None or len(rows) > MOST_ARMS:
            return None
        return self.arm.encode([self.features[row] for row in rows], what="arms")

    def _policy(self, frozen: FrozenBandit, rows: Rows, known: Mapping[int, int]) -> SparsePolicy:
        """Return how likely a bandit takes each action that was offered, in some decisions."""
        width = max(len(self.log.offered[row]) for row in rows.tolist())
        candidates = np.full((len(rows), width), -1, dtype=np.int32)
        shares = np.zeros((len(rows), width))
        few: dict[tuple[int, ...], FrozenBandit] = {}
        for n, row in enumerate(rows.tolist()):
            self.progress(n, len(rows), "asking for actions")
            offered = self.log.offered[row]
            if offered not in few and len(few) >= _REMEMBERED:
                few.clear()
            if offered not in few:
                few[offered] = frozen.offering([self.offer(one) for one in offered])
            candidates[n, : len(offered)] = [known[one] for one in offered]
            shares[n, : len(offered)] = self._shares(few[offered], row, offered)
        return SparsePolicy(candidates, shares, arms=len(known), draws=_DRAWS)

    def _shares(self, few: FrozenBandit, row: int, offered: tuple[int, ...]) -> list[float]:
        epsilon = self.settings.get("select.epsilon", 0.0)
        found = few.propensities(self.contexts[row], draws=_DRAWS, epsilon=epsilon, seed=row)
        return [found.of(self.log.ids[one]) for one in offered]

    def offer(self, row: int) -> Offer:
        return Offer(self.log.ids[row], self.features[row] if self.arm is not None else None)


def better_learned(
    given: ActionDecisions, how: LogLearning
) -> tuple[ActionDecisions, Bandit, LearnedLog]:
    """Learn by features and by ids; return the one with the lower loss on what it has not seen."""
    bandit, learned = how.learn(given)
    if given.arm is None or given.arm_count > MOST_IDS or learned.checks.loss is None:
        return given, bandit, learned
    by_id = replace(given, by_id=True)
    other, also = how.learn(by_id)
    if also.checks.loss is not None and also.checks.loss <= learned.checks.loss:
        return by_id, other, also
    return given, bandit, learned
