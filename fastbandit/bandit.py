"""Bandit: the front door. A policy, its history and its seeds: select, update, save."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fastbandit.arms import spaces
from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.catalogue import Catalogue, Embed
from fastbandit.arms.columns import Columns
from fastbandit.arms.ids import list_ids
from fastbandit.arms.rows import Upserted
from fastbandit.arms.stale_ids import check_known
from fastbandit.audit import audit
from fastbandit.declaration import check_seed
from fastbandit.features.rewards import RewardKind
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
    `posterior` are names or objects; `preset` names settings of what is named, or a file of them.
    `reward` is "binary", "real", or weights of outcomes: {"quality": 1, "cost": -0.5}. A part from
    outside may be named by its import path, "my_module:MySearch", if `part_modules` has its module.
    `progress` shows a bar during updates (None: on a terminal).
    """

    def __init__(
        self,
        *,
        arms: Any = None,
        ids: Iterable[Any] | None = None,
        columns: Any = None,
        context: Any,
        reward: RewardKind | Mapping[str, float] = "binary",
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
        kind, space, arm_kind = spaces.read_both(context, arms, ids, columns, embed_ids=embed_ids)
        self._device, self._progress = check_device(device), progress
        self._private: RewardModel | None = None  # a model that only this bandit holds
        parts = PartNames(exploration, search, posterior, part_modules)
        self._blueprint = blueprint(
            parts, context=kind, arm=arm_kind, reward=reward, preset=preset, seed=check_seed(seed)
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
        state, frozen = self._with_compiled()
        if strict:
            check_known(eligible, state.table(self._blueprint).ids)
        terms: dict[str, Any] = {"diversity": diversity, "explore": explore}
        if frozen is not None:
            inputs = self._blueprint.context.read(contexts, what="contexts")
            known = decision_seeds(self._blueprint.seed, state.decisions, len(inputs))
            threads = torch.get_num_threads()
            terms |= {"seeds": known if seeds is None else seeds, "threads": threads}
            decision = frozen.select(inputs, k=k, eligible=eligible, **terms)
        else:
            asked = {"k": k, "eligible": eligible, "strict": strict}
            request = state.read_request(self._blueprint, contexts, **asked)
            terms |= {"seeds": seeds, "version": state.version}
            table = state.table(self._blueprint)
            decision = decide_by_torch(state.policy, table, request, **terms)
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
        plan = self._blueprint.grown(contexts=contexts)
        fresh = self._state.read_interactions(plan, contexts, arms, rewards)
        if len(fresh) == 0 and not self._state.pending:
            return
        version = self._state.version + 1 if version is None else check_version(version)
        self._learn("Update", fresh, plan, version=version, curve=curve, group=group)

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
        `propensities` of the arms taken, one counts by their inverse, at most ten times the median;
        they may help where a model cannot follow the rewards and the log favours some arms.
        """
        plan = self._blueprint.grown(contexts=contexts)
        fresh = self._state.read_interactions(plan, contexts, arms, rewards)
        fresh = replace(fresh, weights=log_weights(trust, propensities, count=len(fresh)))
        if len(fresh):
            self._learn("Fit", fresh, plan, version=self._state.version + 1)
        return self

    def reweight(self, weights: Mapping[str, float]) -> None:
        """Count these outcomes by other weights, and learn the whole history anew.

        An outcome that is not named keeps its weight; one of weight 0 is not needed any more.
        """
        plan, before = self._blueprint.reweighted(weights), self._state.everything
        if before is None:
            self._blueprint = plan
            return
        self._learn("Reweighting", before.take(slice(0)), plan, version=self.version + 1)

    def read_by(self, plan: Blueprint) -> None:
        """Read rows by a blueprint whose open schemas know other names; nothing is learned."""
        self._blueprint = plan

    def _learn(self, doing: str, fresh: Interactions, plan: Blueprint, **others: Any) -> None:
        with progress_bar(doing, is_shown=self._progress) as progress:
            learned = self._state.learned(plan, fresh, Reports(progress, **others))
        now = self._state.decisions  # some came meanwhile
        self._blueprint, self._state = plan, replace(learned, decisions=now)

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
        fresh = state.read_interactions(self._blueprint, contexts, arms, rewards)
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
        request = self._state.read_request(self._blueprint, contexts, k=1)
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
        """Set the columns that predicates speak of: one value a row, also of discarded arms."""
        catalogue = self._catalogue("give columns to")
        self._replace_arms(replace(catalogue, rows=catalogue.rows.with_columns(columns)))

    def add_arms(
        self, arms: Any = None, *, ids: Iterable[Any] | None = None, columns: Any = None
    ) -> None:
        """Let more arms be chosen from now on; they are indexed anew, so add them in bulk."""
        after, plan = self._catalogue("add arms to"), self._blueprint.grown(arms=arms)
        named, features, columns = spaces.read_more(plan.arm, arms, ids, columns, after=after)
        terms = {"columns": columns, "embed": self._embed_arms}
        with torch.no_grad():
            grown = after.add(named, features, **terms)
        self._replace_arms(grown, plan)

    def upsert_arms(
        self, arms: Any, *, ids: Any = None, columns: Any = None, is_trial: bool = False
    ) -> Upserted:
        """Add arms; one whose id can be chosen already is changed, or left if it is the same.

        A trial changes nothing: it counts what would happen, or raises what it would raise.
        """
        after, plan = self._catalogue("upsert arms into"), self._blueprint.grown(arms=arms)
        named, features, columns = spaces.read_more(plan.arm, arms, ids, columns, after=after)
        terms = {"columns": columns, "embed": self._embed_arms}
        with torch.no_grad():
            grown, counts = after.upsert(list_ids(named), features, **terms)
        if not is_trial:
            self._replace_arms(grown, plan)
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

    def _replace_arms(self, arms: Catalogue, plan: Blueprint | None = None) -> None:
        self._blueprint = plan or self._blueprint
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

    def with_history(
        self, history: Interactions | None, in_log: InLog | None = None, *, is_learned: bool = True
    ) -> Bandit:
        """Return the same bandit with these interactions as what it learned, or has yet to."""
        return self._with(self._state.with_history(history, in_log, is_learned=is_learned))

    def rebuilt(self, plan: Blueprint, arms: Catalogue) -> Bandit:
        """Return a bandit of other parts, with these arms, that has yet to learn all it knows."""
        return self._with(self._state.rebuilt(plan.policy(arms, device=self._device)), plan)

    def read_again(self, arms: Catalogue) -> Bandit:
        """Return the same bandit with arms that were read anew, also in what it learned."""
        return self._with(self._state.read_again(arms))

    def _with(self, state: State, plan: Blueprint | None = None) -> Bandit:
        other = copy(self)
        other._blueprint, other._state = plan or self._blueprint, state
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

    def _catalogue(self, doing: str) -> Catalogue:
        return spaces.catalogue_of(self._state.policy.arms, doing)
