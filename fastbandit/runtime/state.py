"""State: all that changes over a bandit's life, as one value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.requests import ArmTable, Request
from fastbandit.arms.spaces import read_interactions, read_request, table_of
from fastbandit.errors import SettingError
from fastbandit.features.kinds import is_size
from fastbandit.features.rewards import combined
from fastbandit.interfaces import Observes, RewardModel
from fastbandit.optim.process_group import SINGLE, ProcessGroup
from fastbandit.policy import Policy
from fastbandit.progress import Progress
from fastbandit.runtime.freezing import CompiledPolicy
from fastbandit.settings.blueprint import Blueprint
from fastbandit.storage.snapshots import InLog, Saved
from fastbandit.training.fit_reward import Curve
from fastbandit.training.update import training_rng, update
from fastbandit.types import Interactions

_PENDING = 256  # observed parts of a history that wait to be put together


class Reports(NamedTuple):
    """The version that an update makes, who hears of it, and the processes that run it."""

    progress: Progress
    version: int
    curve: Curve | None = None
    group: ProcessGroup = SINGLE


@dataclass(frozen=True)
class State:
    """All that changes over a bandit's life, replaced as one."""

    policy: Policy
    history: Interactions | None = None
    version: int = 0
    decisions: int = 0
    compiled: CompiledPolicy | None = None
    pending: tuple[Interactions, ...] = ()
    """Observed since the history was put together."""
    in_log: InLog | None = None
    """What it learned besides, where that is not at hand."""

    @property
    def whole_history(self) -> Interactions | None:
        """All interactions whose reward is known, those observed since the last update included."""
        every = self.everything
        return None if every is None else every.known

    @property
    def everything(self) -> Interactions | None:
        """All interactions, also those whose outcomes do not make a reward yet."""
        if not self.pending:
            return self.history
        before = () if self.history is None else (self.history,)
        return Interactions.stack([*before, *self.pending])

    def trained(self, what: str) -> Policy:
        """Return the policy, if it learned something, as `what` needs."""
        if self.version == 0:
            raise SettingError(
                f"{what} needs a bandit that has learned something: got one without any update. "
                f"Call update() first."
            )
        return self.policy

    def compiled_by(self, plan: Blueprint) -> State:
        """Return the same with its compiled policy, which there is from the first update on."""
        is_there = self.compiled is not None and self.compiled.policy is self.policy
        if self.version == 0 or is_there:
            return self
        compiled = CompiledPolicy.of(plan, self.policy, version=self.version)
        return replace(self, compiled=compiled)

    def learned(self, plan: Blueprint, fresh: Interactions, reports: Reports) -> State:
        """Return the state after an update: fresh interactions, with all that came before."""
        if self.in_log is not None and self.in_log.count:
            raise SettingError(
                f"An update needs all interactions that were learned before: {self.in_log.count:,} "
                f"of this bandit's are in the log of its service. Let the service's learner train "
                f"it, or fit a new bandit to an export of the log."
            )
        before = self.everything
        history = fresh if before is None else Interactions.stack([before, fresh])
        if history.outcomes is not None:
            rewards = combined(history.outcomes, plan.weights, count=len(history))
            history = replace(history, rewards=rewards)
        if not len(history.known):
            return replace(self, history=history, pending=())
        policy = update(
            self.policy,
            history.known,
            fresh=len(history.take(slice(len(history) - len(fresh), None)).known),
            training=plan.training,
            rng=training_rng(plan.seed, reports.version),
            progress=reports.progress,
            curve=reports.curve,
            group=reports.group,
        )
        return replace(self, policy=policy, history=history, version=reports.version, pending=())

    def with_history(
        self, history: Interactions | None, in_log: InLog | None, *, is_learned: bool
    ) -> State:
        """Return the same with these interactions as what was learned, or is yet to be."""
        yet = () if is_learned or history is None else (history,)
        before = None if yet else history
        return replace(self, history=before, pending=yet, in_log=in_log)

    def rebuilt(self, policy: Policy) -> State:
        """Return the state of a policy with other parts, which has yet to learn all of this."""
        every, arms = self.everything, policy.arms
        if every is not None and isinstance(arms, Catalogue):
            every = _seen_by(arms, every)
        other = State(policy, decisions=self.decisions)
        return other.with_history(every, self.in_log, is_learned=False)

    def read_again(self, arms: Catalogue) -> State:
        """Return the same with arms in the same rows that were read anew, in the history as well.

        A model sees them so from the next update on.
        """
        history = None if self.history is None else _seen_by(arms, self.history)
        pending = tuple(_seen_by(arms, one) for one in self.pending)
        return replace(
            self, policy=replace(self.policy, arms=arms), history=history, pending=pending
        )

    def observed(self, fresh: Interactions, model: object) -> State:
        """Return the state after a model, which nobody else holds, learned single rewards."""
        state, known = self, fresh.known
        if len(state.pending) >= _PENDING:
            state = replace(state, history=state.everything, pending=())
        assert isinstance(model, Observes)
        history = state.whole_history if model.needs_history(known) else known
        assert history is not None
        model.observe(history, known)
        assert isinstance(model, RewardModel)
        policy = replace(state.policy, model=model)
        return replace(state, policy=policy, pending=(*state.pending, fresh))

    # -- reading what callers give

    def table(self, plan: Blueprint) -> ArmTable:
        """Return what reads requests about the arms."""
        return table_of(self.policy.arms, plan)

    def read_request(
        self, plan: Blueprint, contexts: Any, *, k: int, eligible: Any = None, strict: bool = True
    ) -> Request:
        """Read contexts to choose `k` arms for, which are the next decisions."""
        terms = {"k": k, "eligible": eligible, "first": self.decisions, "strict": strict}
        return read_request(self.policy.arms, self.table(plan), contexts, **terms)

    def read_interactions(
        self, plan: Blueprint, contexts: Any, arms: Any, rewards: Any
    ) -> Interactions:
        """Read what came of choosing arms for contexts."""
        given = {"contexts": contexts, "arms": arms, "rewards": rewards}
        return read_interactions(self.policy.arms, self.table(plan), plan.arm, **given)

    # -- what outlives the process

    def saved(self, plan: Blueprint) -> Saved:
        """Return what a snapshot holds of it."""
        pending = sum(map(len, self.pending))
        history = self.everything
        parts = (plan, self.policy, history, self.version, self.decisions)
        return Saved(*parts, pending=pending, in_log=self.in_log)

    @staticmethod
    def of(saved: Saved) -> State:
        """Return the state that a snapshot holds."""
        history, pending = saved.history, tuple[Interactions, ...]()
        if history is not None and saved.pending:
            first = len(history) - saved.pending
            history, pending = history.take(slice(first)), (history.take(slice(first, None)),)
        parts = (saved.policy, history, saved.version, saved.decisions)
        return State(*parts, pending=pending, in_log=saved.in_log)


def _seen_by(arms: Catalogue, history: Interactions) -> Interactions:
    """Return interactions with the features that arms have in a catalogue."""
    assert history.rows is not None
    return replace(history, arms=arms.features.take(history.rows))


def check_observes(model: RewardModel) -> Observes:
    """Return a model, if it learns from single rewards."""
    if not isinstance(model, Observes):
        raise SettingError(
            f"Only arms with effects of their own learn from single rewards: this bandit has a "
            f"{type(model).__name__}. Call update(), or build it with posterior='arm-effects'."
        )
    return model


def check_version(version: Any) -> int:
    """Return the number of an update, if it is one."""
    if not is_size(version):
        raise SettingError(
            f"The version of an update needs to be a whole number of at least 1: got {version!r}. "
            f"Leave it out for the next one."
        )
    return int(version)
