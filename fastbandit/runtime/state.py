"""State: all that changes over a bandit's life, as one value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fastbandit.errors import SettingError
from fastbandit.features.kinds import is_size
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
    """Who hears of an update while it runs, and the processes that run it."""

    progress: Progress
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
        """All interactions, those that were observed since the last update included."""
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

    def learned(
        self, plan: Blueprint, fresh: Interactions, version: int, reports: Reports
    ) -> State:
        """Return the state after an update: fresh interactions, with all that came before."""
        if self.in_log is not None and self.in_log.count:
            raise SettingError(
                f"An update needs all interactions that were learned before: {self.in_log.count:,} "
                f"of this bandit's are in the log of its service. Let the service's learner train "
                f"it, or fit a new bandit to an export of the log."
            )
        before = self.whole_history
        history = fresh if before is None else Interactions.stack([before, fresh])
        policy = update(
            self.policy,
            history,
            fresh=len(fresh),
            training=plan.training,
            rng=training_rng(plan.seed, version),
            progress=reports.progress,
            curve=reports.curve,
            group=reports.group,
        )
        return replace(self, policy=policy, history=history, version=version, pending=())

    def observed(self, fresh: Interactions, model: object) -> State:
        """Return the state after a model, which nobody else holds, learned single rewards."""
        state = self
        if len(state.pending) >= _PENDING:
            state = replace(state, history=state.whole_history, pending=())
        assert isinstance(model, Observes)
        history = state.whole_history if model.needs_history(fresh) else fresh
        assert history is not None
        model.observe(history, fresh)
        assert isinstance(model, RewardModel)
        policy = replace(state.policy, model=model)
        return replace(state, policy=policy, pending=(*state.pending, fresh))

    def saved(self, plan: Blueprint) -> Saved:
        """Return what a snapshot holds of it."""
        pending = sum(map(len, self.pending))
        history = self.whole_history
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
