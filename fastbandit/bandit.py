"""Bandit: the front door. A policy, its history and its seeds: select, update, save."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fastbandit.arms.box import Box
from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.catalogue import Catalogue, Embed
from fastbandit.arms.columns import Columns
from fastbandit.arms.ids import IdTable, list_ids
from fastbandit.arms.requests import ArmTable, Request, read_context
from fastbandit.arms.rows import Upserted
from fastbandit.audit import audit
from fastbandit.declaration import check_seed
from fastbandit.errors import InputError, SettingError, ShapeError
from fastbandit.features.kinds import FeaturesAndIds, Ids, Point, is_size, kind_of, shown
from fastbandit.features.rewards import RewardKind, check_reward_kind, read_rewards
from fastbandit.interfaces import Choice, Exploration, Observes, Posterior, RewardModel, Search
from fastbandit.noise.philox import Stream, decision_seeds, philox, uniforms
from fastbandit.optim.process_group import SINGLE, ProcessGroup
from fastbandit.policy import Policy
from fastbandit.progress import progress_bar
from fastbandit.runtime.compiled_policy import CompiledPolicy
from fastbandit.runtime.freezing import freeze, untrained
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.seeds import read_seeds
from fastbandit.search.slates import candidates_for, check_diversity, pick_apart
from fastbandit.settings.blueprint import Blueprint
from fastbandit.settings.presets import PartNames, Preset, blueprint
from fastbandit.storage.snapshots import Saved, load_snapshot, save_snapshot
from fastbandit.training.fit_reward import Curve
from fastbandit.training.log_weights import log_weights
from fastbandit.training.update import update
from fastbandit.types import Audit, Decision, Features, Inputs, Interactions

_PENDING = 256  # observed parts of a history that wait to be put together


@dataclass(frozen=True)
class State:
    """All that changes over a bandit's life, replaced as one; the twin is made when needed."""

    policy: Policy
    history: Interactions | None = None
    version: int = 0
    decisions: int = 0
    compiled: CompiledPolicy | None = None
    pending: tuple[Interactions, ...] = ()
    """Observed since the history was put together."""

    @property
    def whole_history(self) -> Interactions | None:
        """All interactions, those that were observed since the last update included."""
        if not self.pending:
            return self.history
        before = () if self.history is None else (self.history,)
        return Interactions.stack([*before, *self.pending])


class Bandit:
    """Chooses arms for contexts through a neural network, and learns from the rewards.

    `arms` are features (NumPy, pandas, polars, SciPy, images), a `Box` for a continuum, or
    None where `ids` alone are known and each arm learns an embedding of its own; with
    `embed_ids` arms have both. `columns` are what predicates of `select(eligible=)` speak of, one
    value for each arm: a dict of lists, or a frame. `context` is the number of features of a
    context, or a kind of features. `exploration`, `search` and `posterior` are names or objects;
    `preset` names the settings of what is named, or a TOML file of them. A part from outside the
    package may be named by its import path, "my_module:MySearch", if `part_modules` has its
    module. `progress` shows a bar while an update runs (None: where stderr is a terminal).
    """

    def __init__(
        self,
        *,
        arms: Any = None,
        ids: Iterable[Any] | None = None,
        columns: Any = None,
        context: int | Features,
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
        _check_made(exploration=exploration, search=search, posterior=posterior)
        space, arm_kind = _read_space(arms, ids, columns, embed_ids=embed_ids)
        self._device = _check_device(device)
        self._progress = progress
        self._private: RewardModel | None = None  # a model that only this bandit holds
        self._modules = _check_modules(part_modules)
        self._blueprint = blueprint(
            PartNames(exploration, search, posterior, self._modules),
            context=kind,
            arm=arm_kind,
            reward=reward,
            preset=preset,
            seed=check_seed(seed),
        )
        self._state = State(_first_policy(self._blueprint, space, device=self._device))

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
    ) -> Decision:
        """Choose `k` arms for each context, or all that are `eligible` where those are fewer.

        `diversity`, from 0 to 1, has them differ (`fastbandit.search.slates`): they then come in
        the order they were picked, the first still the one wanted most.
        `eligible` is a list of ids, a mask, or a predicate on columns such as
        {"price": {"<=": 10}}; or one list or predicate for each context. `explore=False`
        chooses by expected reward. `seeds` of an earlier decision repeat its draw. Before
        the first update every arm is equally likely (`Decision.uniform`).
        """
        check_diversity(diversity)
        state, frozen = self._with_compiled()
        if frozen is not None:
            decision = frozen.select(
                contexts,
                k=k,
                diversity=diversity,
                eligible=eligible,
                explore=explore,
                seeds=self._next_seeds(contexts) if seeds is None else seeds,
                threads=torch.get_num_threads(),
            )
        else:
            request = self._read_request(contexts, k=k, eligible=eligible)
            if seeds is not None:
                request = replace(request, seeds=read_seeds(seeds, len(request.seeds)))
            decision = self._decide_by_torch(request, explore=explore, diversity=diversity)
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
        of this update, the next one unless given; `curve` is told the loss as it falls. Members
        of a `team` of processes call this alike, and learn together.
        """
        fresh = self._read_interactions(contexts, arms, rewards)
        if len(fresh) == 0 and not self._state.pending:
            return
        version = self._state.version + 1 if version is None else _check_version(version)
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

        It is an update in which an interaction counts `trust` times, above 0 and at most 1: so
        many of this bandit's own one of the log is worth. None is 1, but a log of more than
        100,000 interactions counts as so many in all: what comes later would drown in it. With
        `propensities`, the probability with which each arm was taken, an interaction counts by
        their inverse, but no more than ten times the median one, and `trust` times on average. A
        reward model does not need them; they may help where it cannot follow the rewards and the
        log favours some arms.
        """
        fresh = self._read_interactions(contexts, arms, rewards)
        weights = log_weights(trust, propensities, count=len(fresh))
        if len(fresh):
            fresh = replace(fresh, weights=weights)
            self._learn("Fit", fresh, version=self._state.version + 1)
        return self

    def _learn(
        self,
        doing: str,
        fresh: Interactions,
        *,
        version: int,
        curve: Curve | None = None,
        group: ProcessGroup = SINGLE,
    ) -> None:
        """Learn fresh interactions with all that came before."""
        state = self._state
        before = state.whole_history
        history = fresh if before is None else Interactions.stack([before, fresh])
        with progress_bar(doing, is_shown=self._progress) as progress:
            policy = update(
                state.policy,
                history,
                fresh=len(fresh),
                training=self._blueprint.training,
                rng=_training_rng(self._blueprint.seed, version),
                progress=progress,
                curve=curve,
                group=group,
            )
        self._state = replace(
            self._state, policy=policy, history=history, version=version, pending=()
        )

    def observe(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn from rewards at once, exactly, without training anything anew.

        For arms that have something of their own (`posterior="arm-effects"`): some microseconds an
        event. What arms share, and the features of contexts, are learned in the next `update`,
        which may be called with no interactions.
        """
        state, model = self._state, self._state.policy.model
        if not isinstance(model, Observes):
            raise SettingError(
                f"Only arms with effects of their own learn from single rewards: this bandit has a "
                f"{type(model).__name__}. Call update(), or build it with posterior='arm-effects'."
            )
        if state.version == 0:
            self.update(contexts=contexts, arms=arms, rewards=rewards)
            return
        fresh = self._read_interactions(contexts, arms, rewards)
        if not len(fresh):
            return
        if len(state.pending) >= _PENDING:
            state = replace(state, history=state.whole_history, pending=())
        mine = model if self._private is model else model.private()
        assert isinstance(mine, Observes)
        history = state.whole_history if mine.needs_history(fresh) else fresh
        assert history is not None
        mine.observe(history, fresh)
        assert isinstance(mine, RewardModel)
        self._private = mine
        policy = replace(state.policy, model=mine)
        self._state = replace(state, policy=policy, pending=(*state.pending, fresh))

    def __copy__(self) -> Bandit:
        """Return a bandit in the same state that goes its own way."""
        other = Bandit.__new__(Bandit)
        other.__dict__.update(self.__dict__)
        other._private = self._private = None  # neither may change what both hold
        return other

    def audit(self, contexts: Any) -> Audit:
        """Compare the search with an exhaustive one, under the draws of the next decisions."""
        state = self._state
        request = self._read_request(contexts, k=1, eligible=None)
        if state.version == 0:
            raise SettingError(
                "An audit needs a bandit that has learned something: got one without any "
                "update. Call update() first."
            )
        return audit(state.policy, request.contexts, seeds=request.seeds)

    # -- the arms

    @property
    def columns(self) -> Columns | None:
        """The columns that predicates speak of, one value for each row there ever was."""
        arms = self._state.policy.arms
        return None if isinstance(arms, BoxSpace) else arms.rows.columns

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
        catalogue = self._catalogue("add arms to")
        listed = None if ids is None else list_ids(ids)
        features = self._read_arms(arms, listed, first=len(catalogue.table))
        with torch.no_grad():
            grown = catalogue.add(listed, features, columns=columns, embed=self._embed_arms)
        self._replace_arms(grown)

    def upsert_arms(
        self, arms: Any, *, ids: Iterable[Any], columns: Any = None, is_trial: bool = False
    ) -> Upserted:
        """Add arms; one whose id can be chosen already is changed, or left if it is the same.

        A trial changes nothing: it counts what would happen, or raises what it would raise.
        """
        catalogue, listed = self._catalogue("upsert arms into"), list_ids(ids)
        features = self._read_arms(arms, listed, first=len(catalogue.table))
        with torch.no_grad():
            grown, counts = catalogue.upsert(
                listed, features, columns=columns, embed=self._embed_arms
            )
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
        policy = self._state.policy
        if arms is not policy.arms:
            self._state = replace(self._state, policy=replace(policy, arms=arms))

    # -- what it is now

    @property
    def version(self) -> int:
        """The number of the last update, 0 where there was none."""
        return self._state.version

    @property
    def policy(self) -> Policy:
        """The current policy; it never changes, an update makes another."""
        return self._state.policy

    @property
    def blueprint(self) -> Blueprint:
        """The parts and settings this bandit was built from."""
        return self._blueprint

    def __len__(self) -> int:
        """The number of arms that can be chosen."""
        arms = self._state.policy.arms
        if isinstance(arms, BoxSpace):
            raise SettingError("A box has no number of arms. Use Box.cover for its fine cover.")
        return len(arms)

    def __contains__(self, id: Any) -> bool:
        """Whether an arm can be chosen."""
        return self._catalogue("look for an id in").is_live(id)

    # -- what outlives the process

    def save(self, path: str | Path) -> None:
        """Write everything into the folder `path`, whole or not at all."""
        state = self._state
        saved = Saved(
            self._blueprint,
            state.policy,
            state.whole_history,
            state.version,
            state.decisions,
            pending=sum(map(len, state.pending)),
        )
        save_snapshot(saved, Path(path))

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str = "cpu",
        part_modules: Iterable[str] = (),
        progress: bool | None = None,
    ) -> Bandit:
        """Read a saved bandit; it goes on exactly where it stopped.

        Parts from outside the package are imported from `part_modules` alone.
        """
        bandit = cls.__new__(cls)
        bandit._device = _check_device(device)
        bandit._progress = progress
        bandit._private = None
        bandit._modules = _check_modules(part_modules)
        saved = load_snapshot(Path(path), device=bandit._device, modules=bandit._modules)
        bandit._blueprint = saved.blueprint
        history, pending = saved.history, tuple[Interactions, ...]()
        if history is not None and saved.pending:
            first = len(history) - saved.pending
            history, pending = history.take(slice(first)), (history.take(slice(first, None)),)
        bandit._state = State(
            saved.policy, history, saved.version, saved.decisions, pending=pending
        )
        return bandit

    def freeze(self, *, dtype: str = "float32") -> FrozenBandit:
        """Give what it decides now as a bandit that needs no torch, and no longer learns.

        The same seeds give the same arms, before the first update any of them. Its own seeds
        go on from those of this bandit.
        `dtype="int16"` or "int8" keeps the arms' coordinates in fewer bytes, rounded.
        """
        state = self._state
        plan, policy = self._blueprint, state.policy
        if state.version == 0:
            policy = untrained(policy)
        return freeze(plan, policy, state.version, state.decisions, dtype=dtype)

    def _with_compiled(self) -> tuple[State, FrozenBandit | None]:
        """Give the state, and what decides in place of its policy where something can."""
        state = self._state
        if state.version == 0:
            return state, None
        compiled = state.compiled
        if compiled is None or compiled.policy is not state.policy:
            compiled = CompiledPolicy.of(self._blueprint, state.policy, version=state.version)
            self._state = state = replace(state, compiled=compiled)
        return state, compiled.frozen

    def _next_seeds(self, contexts: Any) -> NDArray[np.uint64]:
        plan, first = self._blueprint, self._state.decisions
        return decision_seeds(plan.seed, first, len(plan.context.read(contexts, what="contexts")))

    def _decide_by_torch(self, request: Request, *, explore: bool, diversity: float) -> Decision:
        policy, version = self._state.policy, self._state.version
        if version == 0:
            return self._decide_uniformly(request)
        if not explore:
            policy = replace(policy, exploration=policy.exploration.quiet())
        choice = self._choose(policy, request, diversity=diversity)
        return self._decide(choice, request, version=version)

    # -- reading requests and wording decisions

    def _table(self) -> ArmTable:
        arms = self._state.policy.arms
        ids = IdTable(count=1) if isinstance(arms, BoxSpace) else arms.table
        return ArmTable(ids, self._blueprint.context, self._blueprint.reward, self._blueprint.seed)

    def _read_request(self, contexts: Any, *, k: int, eligible: Any) -> Request:
        arms = self._state.policy.arms
        if isinstance(arms, BoxSpace) and eligible is not None:
            raise SettingError(
                "Eligible arms need a catalogue: got a box, in which every point is an arm. "
                "Make the box smaller instead."
            )
        rows = None if isinstance(arms, BoxSpace) else arms.rows
        first = self._state.decisions
        return self._table().read_request(contexts, k=k, eligible=eligible, first=first, rows=rows)

    def _choose(self, policy: Policy, request: Request, *, diversity: float) -> Choice:
        eligible = None
        if request.eligible is not None:
            eligible = torch.from_numpy(request.eligible).to(self._device)
        count = candidates_for(request.k, diversity)
        choice = policy.select(
            request.contexts, seeds=request.seeds, count=count, eligible=eligible
        )
        return choice if count == request.k else _slate(choice, request.k, diversity)

    def _decide(self, choice: Choice, request: Request, *, version: int) -> Decision:
        arms, model = self._state.policy.arms, self._state.policy.model
        scores = model.in_rewards(choice.scores).masked_fill(choice.rows < 0, float("-inf"))
        rows = choice.rows.cpu().numpy()
        is_box = isinstance(arms, BoxSpace)
        decision = self._table().decide(
            request, np.zeros_like(rows) if is_box else rows, scores.cpu().numpy(), version=version
        )
        decision = replace(
            decision,
            evaluations=choice.evaluations.cpu().numpy(),
            lookups=choice.lookups.cpu().numpy(),
            clipped=model.is_clipped(request.contexts),
        )
        if isinstance(arms, BoxSpace):
            values = arms.values(choice.points).cpu().numpy()
            return replace(decision, arms=values[:, 0] if request.k == 1 else values)
        return decision

    def _decide_uniformly(self, request: Request) -> Decision:
        decision = self._table().decide_uniformly(request, version=0)
        arms = self._state.policy.arms
        if not isinstance(arms, BoxSpace):
            return decision
        numbers = uniforms(request.seeds, request.k * arms.dim, Stream.UNIFORM_CHOICE)
        low, high = np.asarray(arms.box.low), np.asarray(arms.box.high)
        values = low + (high - low) * numbers.reshape(-1, request.k, arms.dim)
        values = values.astype(np.float32)
        zeros = np.zeros((len(request.seeds), request.k))
        return replace(
            decision,
            arms=values[:, 0] if request.k == 1 else values,
            rows=zeros.astype(np.int64),
            scores=zeros.astype(np.float32),
        )

    def _read_interactions(self, contexts: Any, arms: Any, rewards: Any) -> Interactions:
        space = self._state.policy.arms
        if isinstance(space, BoxSpace):
            inputs = self._blueprint.context.read(contexts, what="contexts")
            values = self._blueprint.arm.read(arms, what="arms")
            if len(values) != len(inputs):
                raise ShapeError(
                    f"Each context needs one arm: got {len(inputs)} contexts and "
                    f"{len(values)} arms. Give a context once for each of its arms."
                )
            space.box.check(values)
            numbers = read_rewards(rewards, kind=self._blueprint.reward, count=len(inputs))
            return Interactions(inputs, values, numbers)
        told = self._table().read_feedback(contexts=contexts, arms=arms, rewards=rewards)
        features = space.features.take(told.rows)
        return Interactions(told.contexts, features, told.rewards, rows=told.rows)

    def _catalogue(self, doing: str) -> Catalogue:
        arms = self._state.policy.arms
        if isinstance(arms, BoxSpace):
            raise SettingError(f"One cannot {doing} a box: every point of it is an arm.")
        return arms

    def _read_arms(self, arms: Any, ids: list[Any] | None, *, first: int) -> Inputs:
        kind = self._blueprint.arm
        if arms is None and ids is None:
            raise InputError(
                "New arms need features, ids or both: got neither. Give arms=, a row for each."
            )
        if isinstance(kind, Ids) and arms is not None:
            raise InputError(
                f"This bandit knows its arms by their ids alone: got features of type "
                f"{type(arms).__name__}. Give ids=, or build a bandit from features."
            )
        if isinstance(kind, Ids):
            return Inputs(ids=np.arange(first, first + len(ids or ())))
        if isinstance(kind, FeaturesAndIds):
            features = kind.features.read(arms, what="arms")
            return replace(features, ids=np.arange(first, first + len(features)))
        return kind.read(arms, what="arms")


def _read_space(
    arms: Any, ids: Iterable[Any] | None, columns: Any, *, embed_ids: bool
) -> tuple[Catalogue | BoxSpace, Features]:
    """Turn what the caller calls arms into an arm space and the kind of its features."""
    if isinstance(arms, Box):
        if ids is not None or columns is not None:
            raise SettingError(
                f"A box needs no ids or columns, as every point of it is an arm: got "
                f"ids={shown(ids)} and columns={shown(columns)}. Leave them out."
            )
        return BoxSpace(arms), Point(arms.low, arms.high)
    if arms is None:
        table = IdTable(ids)
        return Catalogue.of(table, Inputs(ids=np.arange(len(table))), columns), Ids(len(table))
    kind = kind_of(arms, what="arms")
    features = kind.read(arms, what="arms")
    table = IdTable(ids, count=len(features))
    if not embed_ids:
        return Catalogue.of(table, features, columns), kind
    features = replace(features, ids=np.arange(len(table)))
    return Catalogue.of(table, features, columns), FeaturesAndIds(kind, Ids(len(table)))


def _first_policy(plan: Blueprint, space: Catalogue | BoxSpace, *, device: str) -> Policy:
    model = plan.model(device=device)
    if isinstance(space, Catalogue):
        model.observe_arms(space.features)
    return Policy(model, plan.exploration, plan.search, space)


def _slate(choice: Choice, k: int, diversity: float) -> Choice:
    """Pick k arms that differ out of a choice of more."""
    scores, points = choice.scores.cpu().numpy(), choice.points.cpu().numpy()
    picked = pick_apart(scores, points, k=k, diversity=diversity)
    places = torch.from_numpy(picked).to(choice.rows.device)
    return replace(
        choice,
        rows=choice.rows.gather(1, places),
        points=choice.points.gather(1, places[..., None].expand(-1, -1, points.shape[2])),
        scores=choice.scores.gather(1, places),
    )


def _training_rng(seed: int, version: int) -> torch.Generator:
    """Give the random source of one update: a function of the seed and the version alone."""
    root = np.array([seed % 2**64], dtype=np.uint64)
    words = philox(root, np.array([version], dtype=np.uint64), int(Stream.TRAINING))[0, 0]
    return torch.Generator().manual_seed(int(words[0]))


def _check_version(version: Any) -> int:
    if not is_size(version):
        raise SettingError(
            f"The version of an update needs to be a whole number of at least 1: got {version!r}. "
            f"Leave it out for the next one."
        )
    return int(version)


def _check_made(**parts: Any) -> None:
    """Refuse a class where an object of it is meant."""
    for name, part in parts.items():
        if isinstance(part, type):
            raise SettingError(
                f"The part {name}= needs a name or an object: got the class {part.__name__}. Write "
                f"{name}={part.__name__}()."
            )


def _check_modules(modules: Any) -> tuple[str, ...]:
    if isinstance(modules, str):
        raise SettingError(
            f"part_modules needs to be a list of modules: got {modules!r}. Write [{modules!r}]."
        )
    return tuple(modules)


def _check_device(device: str) -> str:
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise SettingError(
            f"The device needs to be one torch knows: got {device!r}. Use 'cpu' or 'cuda'."
        ) from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise SettingError(
            f"The device {device!r} needs a GPU that torch can see: found none. Use 'cpu'."
        )
    return str(chosen)
