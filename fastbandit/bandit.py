"""Bandit: the front door. A policy, its history and its seeds: select, update, save."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.catalogue import Catalogue, Embed
from fastbandit.arms.columns import Columns
from fastbandit.arms.ids import list_ids
from fastbandit.arms.requests import ArmTable, Request, read_context
from fastbandit.arms.rows import Upserted
from fastbandit.arms.spaces import read_interactions, read_more, read_request, read_space, table_of
from fastbandit.arms.stale_ids import check_known
from fastbandit.audit import audit
from fastbandit.declaration import check_seed
from fastbandit.errors import SettingError
from fastbandit.features.rewards import RewardKind, check_reward_kind
from fastbandit.interfaces import Exploration, Posterior, RewardModel, Search
from fastbandit.noise.philox import decision_seeds
from fastbandit.optim.process_group import SINGLE, ProcessGroup
from fastbandit.policy import Policy
from fastbandit.progress import progress_bar
from fastbandit.runtime.explanation import Asked, Explanation, check_learned
from fastbandit.runtime.freezing import freeze, untrained
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.plots import figure_of
from fastbandit.runtime.shown import html_of_bandit, text_of_bandit
from fastbandit.runtime.state import Reports, State, check_observes, check_version
from fastbandit.runtime.torch_decisions import check_device, decide_by_torch
from fastbandit.runtime.torch_explanation import Terms, explain_policy
from fastbandit.search.slates import check_diversity
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.presets import PartNames, Preset, blueprint
from fastbandit.storage.snapshots import InLog, load_snapshot, save_snapshot
from fastbandit.training.fit_reward import Curve
from fastbandit.training.log_weights import log_weights
from fastbandit.types import Audit, Decision, Interactions


class Bandit:
    """Chooses arms for contexts through a neural network, and learns from the rewards.

    `arms` are a table with names (pandas, polars, Arrow, dicts), features by position (NumPy,
    SciPy, images), a `Box` for a continuum, or None where `ids` alone are known and each arm learns
    an embedding of its own; with `embed_ids` arms have both. `columns` are what predicates of
    `select(eligible=)` speak of, a dict of lists or a frame. `context` is a table of contexts, a
    `Schema`, the number of their features, or a kind of them. `exploration`, `search` and
    `posterior` are names or objects; `preset` names the settings of what is named, or a TOML file
    of them. A part from outside the package may be named by its import path, "my_module:MySearch",
    if `part_modules` has its module. `progress` shows a bar during updates (None: on a terminal).
    """

    def __init__(
        self,
        *,
        arms: Any = None,
        ids: Iterable[Any] | None = None,
        columns: Any = None,
        context: Any,
        reward: RewardKind = "binary",
        exploration: str | Exploration = "ts",
        search: str | Search = "auto",
        preset: Preset = "default",
        posterior: str | Posterior = "auto",
        embed_ids: bool = False,
        part_modules: Iterable[str] = (),
        seed: int = 0,
        device: str = "cpu",
        progress: bool | None = None,
    ) -> None:
        check_reward_kind(reward)
        kind = read_context(context)
        space, arm_kind = read_space(arms, ids, columns, embed_ids=embed_ids)
        self._device, self._progress = check_device(device), progress
        self._private: RewardModel | None = None  # a model that only this bandit holds
        self._blueprint = blueprint(
            PartNames(exploration, search, posterior, part_modules),
            context=kind,
            arm=arm_kind,
            reward=reward,
            preset=preset,
            seed=check_seed(seed),
        )
        self._state = State(self._blueprint.policy(space, device=self._device))

    # -- deciding

    def select(
        self,
        contexts: Any,
        *,
        k: int = 1,
        diversity: float = 0.0,
        eligible: Any = None,
        explore: bool = True,
        seeds: NDArray[np.uint64] | None = None,
        strict: bool = False,
    ) -> Decision:
        """Choose `k` arms for each context, or all that are `eligible` where those are fewer.

        `diversity`, from 0 to 1, has them differ (`fastbandit.search.slates`): they then come in
        the order they were picked, the first still the one wanted most.
        `eligible` is a list of ids, a mask, or a predicate on columns such as
        {"price": {"<=": 10}}; or one list or predicate for each context. Ids that no arm has (any
        more) are dropped and counted (`Decision.dropped`); `strict` refuses those never known.
        `explore=False` chooses by expected reward. `seeds` of an earlier decision repeat its draw.
        Before the first update every arm is equally likely (`Decision.uniform`).
        """
        check_diversity(diversity)
        if strict:
            check_known(eligible, self._table.ids)
        state, frozen = self._with_compiled()
        terms: dict[str, Any] = {"diversity": diversity, "explore": explore}
        if frozen is not None:
            inputs = self._blueprint.context.read(contexts, what="contexts")
            known = decision_seeds(self._blueprint.seed, state.decisions, len(inputs))
            threads = torch.get_num_threads()
            terms |= {"seeds": known if seeds is None else seeds, "threads": threads}
            decision = frozen.select(inputs, k=k, eligible=eligible, **terms)
        else:
            request = self._read_request(contexts, k=k, eligible=eligible, strict=strict)
            terms |= {"seeds": seeds, "version": state.version}
            decision = decide_by_torch(state.policy, self._table, request, **terms)
        if seeds is None:
            self._state = replace(state, decisions=state.decisions + len(decision.seeds))
        return decision

    def update(
        self,
        *,
        contexts: Any,
        arms: Any,
        rewards: Any,
        version: int | None = None,
        curve: Curve | None = None,
        group: ProcessGroup = SINGLE,
    ) -> None:
        """Learn what came of choosing `arms` for `contexts`, with all that came before.

        Whatever stops an update half-way leaves the bandit as it was. `version` is the number
        of this update, the next one unless given; `curve` is called with the loss as it falls. All
        ranks of a process `group` call this alike, and learn together.
        """
        fresh = self._read_interactions(contexts, arms, rewards)
        if len(fresh) == 0 and not self._state.pending:
            return
        version = self._state.version + 1 if version is None else check_version(version)
        self._learn("Update", fresh, version=version, curve=curve, group=group)

    def fit(
        self,
        *,
        contexts: Any,
        arms: Any,
        rewards: Any,
        propensities: Any = None,
        trust: float | None = None,
    ) -> Bandit:
        """Learn a log that another policy made, or none: a warm start, before any update or later.

        An interaction counts `trust` times, above 0 and at most 1. None is 1, but more than
        100,000 interactions count as so many in all: what comes later would drown in them. With
        `propensities`, the probability with which each arm was taken, one counts by their inverse,
        at most ten times the median. A reward model does not need them; they may help where it
        cannot follow the rewards and the log favours some arms.
        """
        fresh = self._read_interactions(contexts, arms, rewards)
        weights = log_weights(trust, propensities, count=len(fresh))
        if len(fresh):
            fresh = replace(fresh, weights=weights)
            self._learn("Fit", fresh, version=self._state.version + 1)
        return self

    def _learn(self, doing: str, fresh: Interactions, *, version: int, **others: Any) -> None:
        with progress_bar(doing, is_shown=self._progress) as progress:
            reports = Reports(progress, **others)
            learned = self._state.learned(self._blueprint, fresh, version, reports)
        self._state = replace(learned, decisions=self._state.decisions)  # some came meanwhile

    def observe(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn from rewards at once, exactly, without training anything anew.

        For arms that have something of their own (`posterior="arm-effects"`): some microseconds an
        event. What arms share, and the features of contexts, are learned in the next `update`,
        which may be called with no interactions.
        """
        state, model = self._state, check_observes(self._state.policy.model)
        if state.version == 0:
            self.update(contexts=contexts, arms=arms, rewards=rewards)
            return
        fresh = self._read_interactions(contexts, arms, rewards)
        if len(fresh):
            mine = model if self._private is state.policy.model else model.private()
            self._state = state.observed(fresh, mine)
            self._private = self._state.policy.model

    def __copy__(self) -> Bandit:
        """Return a bandit in the same state that goes its own way."""
        other = Bandit.__new__(Bandit)
        other.__dict__.update(self.__dict__)
        other._private = self._private = None  # neither may change what both hold
        return other

    def audit(self, contexts: Any) -> Audit:
        """Compare the search with an exhaustive one, under the draws of the next decisions."""
        request = self._read_request(contexts, k=1, eligible=None, strict=True)
        check_learned(self.version, what="An audit")
        return audit(self.policy, request.contexts, seeds=request.seeds)

    def explain(
        self,
        context: Any,
        arm: Any,
        *,
        seed: int | None = None,
        eligible: Any = None,
        draws: int = 0,
    ) -> Explanation:
        """Return what an arm's score for a context is made of, as `FrozenBandit.explain` does."""
        asked, decider = Asked(arm, seed, self.version), self._with_compiled()
        plan, terms = self._blueprint, Terms(eligible, draws)
        return explain_policy(plan, decider, context, asked=asked, terms=terms, select=self.select)

    def plot(self, context: Any = None) -> Any:
        """Return a figure: reward so far, what arms earned, and expectations for a context."""
        return figure_of(self._state, self._blueprint, context)

    # -- the arms

    @property
    def columns(self) -> Columns | None:
        """The columns that predicates speak of, one value for each row there ever was."""
        return None if isinstance(self.policy.arms, BoxSpace) else self.policy.arms.rows.columns

    def set_columns(self, columns: Any) -> None:
        """Set the columns that predicates speak of, in place of those they had.

        A mapping or frame, with one value for each row there ever was, discarded arms included.
        """
        catalogue = self._catalogue("give columns to")
        self._replace_arms(replace(catalogue, rows=catalogue.rows.with_columns(columns)))

    def add_arms(
        self, arms: Any = None, *, ids: Iterable[Any] | None = None, columns: Any = None
    ) -> None:
        """Let more arms be chosen from now on; they are indexed anew, so add them in bulk."""
        catalogue, kind = self._catalogue("add arms to"), self._blueprint.arm
        more = read_more(kind, arms, ids, columns, first=len(catalogue.table))
        named, features, columns = more
        with torch.no_grad():
            grown = catalogue.add(named, features, columns=columns, embed=self._embed_arms)
        self._replace_arms(grown)

    def upsert_arms(
        self, arms: Any, *, ids: Any = None, columns: Any = None, is_trial: bool = False
    ) -> Upserted:
        """Add arms; one whose id can be chosen already is changed, or left if it is the same.

        A trial changes nothing: it counts what would happen, or raises what it would raise.
        """
        catalogue, kind = self._catalogue("upsert arms into"), self._blueprint.arm
        first = len(catalogue.table)
        named, features, columns = read_more(kind, arms, ids, columns, first=first)
        ids, terms = list_ids(named), {"columns": columns, "embed": self._embed_arms}
        with torch.no_grad():
            grown, counts = catalogue.upsert(ids, features, **terms)
        self._replace_arms(catalogue if is_trial else grown)
        return counts

    def discard_arms(self, ids: Iterable[Any], *, is_trial: bool = False) -> list[Any]:
        """Never choose these arms again; what was learned from them stays.

        Returns the ids of those that could not be chosen anyway. A trial changes nothing.
        """
        catalogue = self._catalogue("discard arms of")
        without, missing = catalogue.discard(list_ids(ids))
        self._replace_arms(catalogue if is_trial else without)
        return missing

    @property
    def _embed_arms(self) -> Embed:
        """How the model sees arms, once it has learned something."""
        return self._state.policy.model.embed_arms if self._state.version else None

    def _replace_arms(self, arms: Catalogue) -> None:
        if arms is not self.policy.arms:
            self._state = replace(self._state, policy=replace(self.policy, arms=arms))

    # -- what it is now

    __repr__, _repr_html_ = text_of_bandit, html_of_bandit

    @property
    def version(self) -> int:
        """The number of the last update, 0 where there was none."""
        return self._state.version

    @property
    def policy(self) -> Policy:
        """The current policy; it never changes, an update makes another."""
        return self._state.policy

    @property
    def history(self) -> Interactions | None:
        """All interactions that it has learned from, None where there was none."""
        return self._state.whole_history

    @property
    def in_log(self) -> InLog | None:
        """What it has learned besides, where that is in the log of a service alone."""
        return self._state.in_log

    def with_history(self, history: Interactions | None, in_log: InLog | None = None) -> Bandit:
        """Return the same bandit with these interactions as what it has learned from."""
        other = copy(self)
        other._state = replace(self._state, history=history, pending=(), in_log=in_log)
        return other

    @property
    def blueprint(self) -> Blueprint:
        """The parts and settings this bandit was built from."""
        return self._blueprint

    def __len__(self) -> int:
        """The number of arms that can be chosen."""
        return len(self._catalogue("count the arms of"))

    def __contains__(self, id: Any) -> bool:
        """Whether an arm can be chosen."""
        return self._catalogue("look for an id in").is_live(id)

    # -- what outlives the process

    def save(self, path: str | Path) -> None:
        """Write everything into the folder `path`, whole or not at all."""
        save_snapshot(self._state.saved(self._blueprint), Path(path))

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str = "cpu",
        part_modules: Iterable[str] = (),
        progress: bool | None = None,
    ) -> Bandit:
        """Read a saved bandit, which goes on exactly where it stopped; see `part_modules` above."""
        bandit = cls.__new__(cls)
        bandit._device, bandit._progress, bandit._private = check_device(device), progress, None
        saved = load_snapshot(Path(path), device=bandit._device, modules=part_modules)
        bandit._blueprint, bandit._state = saved.blueprint, State.of(saved)
        return bandit

    def freeze(self, *, dtype: str = "float32") -> FrozenBandit:
        """Return what it decides now as a bandit that needs no torch, and no longer learns.

        The same seeds give the same arms. Its own seeds go on from those of this bandit.
        `dtype="int16"` or "int8" keeps the arms' coordinates in fewer bytes, rounded.
        """
        state, plan = self._state, self._blueprint
        policy = state.policy if state.version else untrained(state.policy)
        return freeze(plan, policy, state.version, state.decisions, dtype=dtype)

    def _with_compiled(self) -> tuple[State, FrozenBandit | None]:
        """Return the state, and what decides in place of its policy where something can."""
        self._state = state = self._state.compiled_by(self._blueprint)
        return state, None if state.compiled is None else state.compiled.frozen

    # -- reading what callers give

    @property
    def _table(self) -> ArmTable:
        plan = self._blueprint
        return table_of(self._state.policy.arms, plan.context, plan.reward, plan.seed)

    def _read_request(
        self, contexts: Any, *, k: int, eligible: Any, strict: bool = True
    ) -> Request:
        arms, first = self._state.policy.arms, self._state.decisions
        terms = {"k": k, "eligible": eligible, "first": first, "strict": strict}
        return read_request(arms, self._table, contexts, **terms)

    def _read_interactions(self, contexts: Any, arms: Any, rewards: Any) -> Interactions:
        given = {"contexts": contexts, "arms": arms, "rewards": rewards}
        return read_interactions(self._state.policy.arms, self._table, self._blueprint.arm, **given)

    def _catalogue(self, doing: str) -> Catalogue:
        arms = self._state.policy.arms
        if isinstance(arms, BoxSpace):
            raise SettingError(f"One cannot {doing} a box: every point of it is an arm.")
        return arms
