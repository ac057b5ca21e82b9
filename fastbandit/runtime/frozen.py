"""FrozenBandit: decides in tens of microseconds, without torch, from many threads."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.ids import list_ids
from fastbandit.arms.partitions import Floats, Positions
from fastbandit.cores import in_parts
from fastbandit.errors import (
    FastbanditError,
    InputError,
    NotFiniteError,
    SettingError,
    ShapeError,
)
from fastbandit.features.kinds import FeaturesAndIds, Ids, is_size, shown
from fastbandit.noise.draws import seed_of
from fastbandit.noise.philox import decision_seeds
from fastbandit.runtime.columns import Columns
from fastbandit.runtime.deltas import check_delta
from fastbandit.runtime.folder import Stored, read_folder, write_folder
from fastbandit.runtime.gates import gate_for_one, gate_to_any, gates_for
from fastbandit.runtime.kernel import SCALE, decide
from fastbandit.runtime.live import Gate, Live, Put
from fastbandit.runtime.parts import FrozenModel, still
from fastbandit.runtime.propensity import (
    Propensities,
    are_uniform,
    check_epsilon,
    draw_eligible_row,
    is_certain,
    is_uniform,
    propensities_of,
    propensity_seeds,
)
from fastbandit.runtime.units import Units
from fastbandit.search.slates import candidates_for, check_diversity, pick_apart
from fastbandit.types import Decision, Inputs

_WAITING = 1024
_ONE_IN = 100
"""When so many arms, and such a share of all, are not in partitions, they are put there."""


class Chosen(NamedTuple):
    """One decision: the arm, how much it was wanted (in units of reward), and what it cost.

    `clipped` says that a number of the context was cut, as it is far from those seen so far.
    """

    arm: Any
    row: int
    score: float
    seed: int
    version: int
    evaluations: int
    lookups: int
    clipped: bool = False


class _Desk(threading.local):
    """A thread's own arrays for one request and its answer."""

    def __init__(self, columns: int) -> None:
        self.contexts = np.empty((1, columns), dtype=np.float32)
        self.seeds = np.empty(1, dtype=np.uint64)
        self.rows = np.empty((1, 1), dtype=np.int32)
        self.scores = np.empty((1, 1), dtype=np.float32)
        self.costs = np.empty((1, 3), dtype=np.int64)
        self.is_clipped = False


class FrozenBandit:
    """A bandit that decides and no longer learns: what `Bandit.freeze` gives.

    Safe to call from many threads: they share arrays that never change. Arms can be added
    and removed at any time; the next decision knows.
    """

    def __init__(self, model: FrozenModel, live: Live, words: Units, *, decisions: int = 0) -> None:
        self._model, self._words, self._live = model.with_lists(), words, live
        self._quiet = replace(model, numbers=_with(model.numbers, SCALE, 0.0)).with_lists()
        self._as_frozen = (self._model, self._quiet)
        self._lock = threading.Lock()
        self._indexing: threading.Thread | None = None
        self._decisions, self._counting = decisions, threading.Lock()
        self._root = np.uint64(words.seed % 2**64)
        columns = model.encoder.shape[1] - 1 if words.context.is_compiled else model.place.shape[1]
        columns = len(model.own_shared) or columns
        self._desk = _Desk(columns)

    # -- deciding

    def select_one(
        self,
        context: Any,
        *,
        seed: int | None = None,
        explore: bool = True,
        eligible: Any = None,
        epsilon: float = 0.0,
    ) -> Chosen:
        """Choose one arm for one context: the quickest way to ask.

        `eligible` is a list of ids, a mask of rows, or a predicate on columns such as
        {"price": {"<=": 10}}. With probability `floor` the arm is any eligible one, and always
        before the first update. The seed fixes all of it.
        """
        self._lay_out(self._desk, context)
        if seed is not None:
            return self._choose_by(_check_seed(seed), context, explore, eligible, epsilon)
        number = self._take(1)
        try:
            seed = int(seed_of(self._root, number))
            return self._choose_by(seed, context, explore, eligible, epsilon)
        except FastbanditError:
            self._give_back(number, 1)
            raise

    def _choose_by(
        self, seed: int, context: Any, explore: bool, eligible: Any, epsilon: float
    ) -> Chosen:
        """Choose for the context that lies on the desk."""
        desk, words = self._desk, self._words
        if words.version == 0:
            return self._any_one(context, seed, eligible)
        desk.seeds[0] = seed
        model = self._model if explore else self._quiet
        while True:
            live = self._live
            gate = live.gate if eligible is None else gate_for_one(live, eligible)
            if epsilon and is_uniform(seed, check_epsilon(epsilon)):
                gate = gate_to_any(live, live.rows_through(gate), seed, count=1)
            self._decide(
                live, gate, desk.contexts, desk.seeds, desk.rows, desk.scores, desk.costs, model
            )
            evaluations, lookups, clipped = desk.costs[0].tolist()
            if evaluations < 0:
                raise NotFiniteError(
                    f"A context needs finite numbers: got {desk.contexts[0].tolist()}. Fill or "
                    f"drop what is missing."
                )
            row = int(desk.rows[0, 0])
            if live is self._live or self._live.are_live(row):
                break
        score = words.in_reward(float(desk.scores[0, 0]))
        cost = (evaluations, lookups, bool(clipped) or desk.is_clipped)
        return Chosen(live.ids.id(row), row, score, seed, words.version, *cost)

    def select(
        self,
        contexts: Any,
        *,
        k: int = 1,
        diversity: float = 0.0,
        eligible: Any = None,
        explore: bool = True,
        epsilon: float = 0.0,
        seeds: NDArray[np.uint64] | None = None,
        threads: int | None = None,
    ) -> Decision:
        """Choose `k` arms for each context, in the words of `Bandit.select`, on all cores.

        `eligible` may also be a predicate on columns, or a list of them, one for each context.
        With probability `floor` the arms of a context are any `k` eligible ones, and always
        before the first update. A slate with `diversity` has no floor.
        """
        if check_diversity(diversity) and epsilon:
            raise SettingError(
                f"A slate with diversity={diversity} needs floor=0, as how likely its arms are is "
                f"not known: got floor={epsilon}. Leave out one of the two."
            )
        if not is_size(k):
            raise SettingError(
                f"The number of arms k needs to be at least 1: got {k!r}. Ask for one or more."
            )
        inputs = self._read(contexts)
        first, numbers = self._seeds(len(inputs), seeds)
        any_arm = self._words.version == 0
        candidates = int(k) if any_arm else candidates_for(int(k), diversity)
        while True:
            live = self._live
            try:
                rows, scores, costs = self._choose(
                    live,
                    inputs,
                    numbers,
                    candidates,
                    eligible,
                    explore=explore,
                    epsilon=check_epsilon(epsilon),
                    threads=threads,
                )
            except FastbanditError:
                self._give_back(first, len(numbers))
                raise
            if live is self._live or self._live.are_live(rows):
                break
        ids = live.ids
        if candidates > k:
            rows, scores = _slate(live, rows, scores, k=int(k), diversity=diversity)
        return Decision(
            arms=ids.ids(rows[:, 0]) if k == 1 else [ids.ids(row[row >= 0]) for row in rows],
            rows=rows.astype(np.int64),
            scores=scores if any_arm else self._words.in_rewards(scores),
            seeds=numbers,
            version=self._words.version,
            uniform=any_arm,
            evaluations=costs[:, 0].copy(),
            lookups=costs[:, 1].copy(),
            clipped=costs[:, 2] > 0,
        )

    def propensities(
        self,
        context: Any,
        *,
        draws: int = 1000,
        epsilon: float = 0.01,
        eligible: Any = None,
        seed: int = 0,
    ) -> Propensities:
        """Tell how likely each arm is for one context, by so many draws, above a floor.

        These are the probabilities of decisions that are made with the same `floor`.
        """
        live, is_exact = self._live, is_certain(self._model)
        seeds = propensity_seeds(seed, draws)[: 1 if is_exact else draws]
        if self._words.version == 0:
            seeds, epsilon = seeds[:0], 1.0
        inputs = self._read(context, is_one=True).take(np.zeros(len(seeds), dtype=np.int64))
        gate = gates_for(live, eligible, contexts=1)[0]
        rows, _, _ = self._choose(
            live, inputs, seeds, 1, gate, explore=True, epsilon=0.0, threads=None
        )
        return propensities_of(
            rows[:, 0],
            live.ids,
            eligible_count=gate.eligible_count,
            epsilon=check_epsilon(epsilon),
            is_exact=is_exact,
        )

    def warm(self) -> None:
        """Compile what decisions need, and touch what they read, before the first is asked for.

        After an installation that takes about half a minute.
        """
        live, desk, model = self._live, self._desk, self._model
        desk.contexts[:], desk.seeds[:] = 0.0, 0
        for gate in (live.gate, live.gate_to(live.eligible_rows[:1])):
            self._decide(
                live, gate, desk.contexts, desk.seeds, desk.rows, desk.scores, desk.costs, model
            )
        seed_of(self._root, 0)
        if len(model.own):  # the first delta must not wait for a compiler
            nothing = np.zeros((0, *model.own.shape[1:]), dtype=np.float32)
            model.with_own(np.zeros(0, dtype=np.int64), nothing, nothing)

    def apply_delta(self, rows: NDArray[np.integer], means: Floats, deviations: Floats) -> None:
        """Let arms have other constants (n,) or weights (n, K) of their own from now on, by row.

        They are all that changed since the bandit was frozen: what an earlier delta changed, and
        this one does not name, is as it was frozen. A decision under way goes on with what it
        began with.
        """
        model, quiet = self._as_frozen
        changed = check_delta(model.own, rows, means, deviations)
        self._model, self._quiet = model.with_own(*changed), quiet.with_own(*changed)

    # -- the arms

    def __len__(self) -> int:
        """The number of arms that can be chosen."""
        return len(self._live)

    @property
    def version(self) -> int:
        """The number of the update behind what it decides, 0 before the first."""
        return self._words.version

    @property
    def waiting(self) -> int:
        """The number of arms that were added and are not in partitions yet: all scored each time."""
        return len(self._live.more)

    @property
    def bytes_per_arm(self) -> float:
        """The bytes an arm takes in memory, partitions and neighbour graph included, ids not."""
        arrays = (*self._live.arms.arrays, self._live.places)
        return sum(array.nbytes for array in arrays) / len(self._live.arms.order)

    @property
    def columns(self) -> Columns | None:
        """The columns that predicates speak of, one value for each row there ever was."""
        return self._live.columns

    @property
    def parts(self) -> tuple[FrozenModel, Live, Units]:
        """What it decides with now; none of the three ever changes."""
        return self._model, self._live, self._words

    def set_columns(self, columns: Any) -> None:
        """Give the arms columns that predicates speak of, in place of those they had.

        A mapping or frame, with one value for each row there ever was, removed arms included.
        """
        with self._lock:
            live = self._live
            is_read = isinstance(columns, Columns) and columns.rows == live.rows
            self._live = replace(live, columns=columns) if is_read else live.with_columns(columns)

    def add_arms(
        self, arms: Any = None, *, ids: Iterable[Any] | None = None, columns: Any = None
    ) -> None:
        """Let more arms be chosen from now on; they go into partitions in the background."""
        listed = None if ids is None else list_ids(ids)
        inputs = self._read_arms(arms, listed)
        points = self._words.points(inputs)
        with self._lock:
            self._live = self._live.added(points, listed, columns)
        self._index_soon()

    def upsert_arms(
        self, arms: Any, *, ids: Iterable[Any], columns: Any = None, is_trial: bool = False
    ) -> Put:
        """Add arms; one whose id can be chosen already is changed, or left if it is the same.

        A trial changes nothing: it tells what would happen, or raises what it would raise.
        """
        listed = list_ids(ids)
        points = self._words.points(self._read_arms(arms, listed))
        with self._lock:
            live, counts = self._live.put(points, listed, columns)
            self._live = self._live if is_trial else live
        self._index_soon()
        return counts

    def discard_arms(self, ids: Iterable[Any], *, is_trial: bool = False) -> list[Any]:
        """Never choose these arms again: no decision that ends after this returns one.

        Returns the ids of those that could not be chosen anyway. A trial changes nothing.
        """
        listed = list(dict.fromkeys(list_ids(ids)))
        with self._lock:
            rows = self._live.eligible_rows_of(listed).tolist()
            there = [id for id, row in zip(listed, rows, strict=True) if row >= 0]
            live = self._live.removed(there) if there else self._live
            self._live = self._live if is_trial else live
        return [id for id, row in zip(listed, rows, strict=True) if row < 0]

    def _index_soon(self) -> None:
        """Put arms into partitions in the background when many are not there."""
        if self.waiting > max(_WAITING, len(self._live.arms.order) // _ONE_IN):
            self.index(wait=False)

    def index(self, *, wait: bool = True) -> None:
        """Put all arms into partitions anew, in the background unless told to `wait`."""
        with self._lock:
            if self._indexing is None or not self._indexing.is_alive():
                self._indexing = threading.Thread(target=self._index, daemon=True)
                self._indexing.start()
            thread = self._indexing
        if wait:
            thread.join()
            if self.waiting:  # added while the partitions were made
                self.index()

    def _index(self) -> None:
        before = self._live
        arms = before.in_partitions()
        with self._lock:
            self._live = self._live.moved_into(arms, before)

    def _read_arms(self, arms: Any, ids: list[Any] | None) -> Inputs:
        kind = self._words.arm.kind
        if isinstance(kind, Ids):
            if arms is not None or ids is None:
                raise InputError(
                    f"This bandit knows its arms by their ids alone: got arms={shown(arms)} and "
                    f"ids={shown(ids)}. Give ids=, and no features."
                )
            return Inputs(ids=np.full(len(ids), np.iinfo(np.int64).max))
        if isinstance(kind, FeaturesAndIds):
            features = kind.features.read(arms, what="arms")
            return replace(features, ids=np.full(len(features), np.iinfo(np.int64).max))
        return kind.read(arms, what="arms")

    # -- one request, and many

    def _lay_out(self, desk: _Desk, context: Any) -> None:
        """Put a context on the desk, embedded where that is not done by compiled code."""
        words = self._words
        if not words.context.is_compiled:
            one = self._read(context, is_one=True)
            if not words.version:
                return  # nothing is scored before the first update
            context, desk.is_clipped = words.context.embed(one)[0], self._is_clipped(one)
        elif isinstance(context, Inputs):
            assert context.dense is not None
            context = context.dense[0]
        try:
            desk.contexts[0] = context
            is_one = np.ndim(context) == 1
        except (TypeError, ValueError):
            is_one = False
        if not is_one:
            raise ShapeError(
                f"A context needs {desk.contexts.shape[1]} numbers in a row: got "
                f"{shown(context)}. Give many contexts to select()."
            )

    def _is_clipped(self, one: Inputs) -> bool:
        return bool(self._words.context.is_clipped(one)[0])

    def _read(self, contexts: Any, *, is_one: bool = False) -> Inputs:
        """Read contexts and check them; those that come as Inputs were checked by the caller."""
        if isinstance(contexts, Inputs):
            return contexts
        is_row = is_one and self._words.context.is_dense
        rows = np.asarray(contexts)[None] if is_row else contexts
        inputs = self._words.context.kind.read(rows, what="contexts")
        if is_one and len(inputs) != 1:
            raise ShapeError(
                f"One context needs one row of features: got {len(inputs)}. Give many contexts "
                f"to select()."
            )
        return inputs

    def _any_one(self, context: Any, seed: int, eligible: Any) -> Chosen:
        """Choose an arm before anything was learned."""
        inputs = self._read(context, is_one=True)
        decision = self.select(inputs, eligible=eligible, seeds=np.array([seed], np.uint64))
        return Chosen(decision.arms[0], int(decision.rows[0, 0]), 0.0, seed, 0, 0, 0)

    def _choose(
        self,
        live: Live,
        inputs: Inputs,
        seeds: NDArray[np.uint64],
        k: int,
        eligible: Any,
        *,
        explore: bool,
        epsilon: float,
        threads: int | None,
    ) -> tuple[Positions, Floats, NDArray[np.int64]]:
        """Choose rows (B, k) with their scores, costs, and whether their contexts were cut."""
        if self._words.version == 0:
            return _any_rows(live, seeds, k, eligible)
        contexts = (
            inputs.dense if self._words.context.is_compiled else self._words.context.embed(inputs)
        )
        assert contexts is not None
        rows = np.empty((len(seeds), k), dtype=np.int32)
        scores = np.empty((len(seeds), k), dtype=np.float32)
        costs = np.empty((len(seeds), 3), dtype=np.int64)
        gates = gates_for(live, eligible, contexts=len(seeds))
        through = cache(lambda number: live.rows_through(gates[number]))

        model = self._model if explore else self._quiet  # one for all, whatever delta comes

        def work(gate: Gate, first: int, last: int) -> None:
            part = slice(first, last)
            answer = (rows[part], scores[part], costs[part])
            self._decide(live, gate, contexts[part], seeds[part], *answer, model)

        if len(gates) > 1:
            for number, gate in enumerate(gates):
                work(gate, number, number + 1)
        elif len(seeds):
            in_parts(len(seeds), partial(work, gates[0]), threads=threads)
        for place in are_uniform(seeds, epsilon).tolist():
            some = through(place if len(gates) > 1 else 0)
            work(gate_to_any(live, some, int(seeds[place]), count=k), place, place + 1)
        _check_finite(costs)
        if not self._words.context.is_compiled:
            costs[:, 2] = self._words.context.is_clipped(inputs)
        return rows, scores, costs

    def _decide(
        self,
        live: Live,
        gate: Gate,
        contexts: Floats,
        seeds: NDArray[np.uint64],
        rows: Positions,
        scores: Floats,
        costs: NDArray[np.int64],
        model: FrozenModel,
    ) -> None:
        decide(  # type: ignore[call-arg]
            *model.arrays,  # type: ignore[arg-type]
            *live.arms.arrays,
            live.more,
            live.first_more,
            live.places,
            *gate,
            contexts,
            seeds,
            rows,
            scores,
            costs,
        )

    def _take(self, count: int) -> int:
        """Give the number of the next decision, and count so many as made."""
        with self._counting:
            first = self._decisions
            self._decisions += count
        return first

    def _give_back(self, first: int | None, count: int) -> None:
        """Count decisions that were refused as not made, unless others were asked for since."""
        with self._counting:
            if first is not None and self._decisions == first + count:
                self._decisions = first

    def _seeds(self, count: int, seeds: Any) -> tuple[int | None, NDArray[np.uint64]]:
        """Give seeds: those that were given, or those of the next decisions and its number."""
        if seeds is None:
            first = self._take(count)
            return first, decision_seeds(self._words.seed, first, count)
        given = np.array(seeds)
        if given.shape != (count,) or given.dtype.kind not in "iu" or (given < 0).any():
            raise ShapeError(
                f"Seeds need to be {count} whole numbers from 0 on, one for each context: got "
                f"{shown(given)} of {given.dtype}. Take them from Decision.seeds."
            )
        return None, given.astype(np.uint64)

    # -- what outlives the process

    def save(self, folder: str | Path) -> None:
        """Write everything into a folder, whole or not at all."""
        stored = Stored(self._model, self._live, self._words, self._decisions)
        write_folder(stored, Path(folder))

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = True) -> FrozenBandit:
        """Map a saved bandit into memory; it goes on exactly where it stopped.

        `verify` reads the files once, to compare them with their checksums.
        """
        stored = read_folder(Path(folder), verify=verify)
        return cls(stored.model, stored.live, stored.words, decisions=stored.decisions)


def _check_seed(seed: Any) -> int:
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise SettingError(
            f"A seed needs to be a whole number from 0 to 2**64 - 1: got {seed!r}. Take one from "
            f"Chosen.seed."
        )
    return int(seed)


def _slate(
    live: Live, rows: Positions, scores: Floats, *, k: int, diversity: float
) -> tuple[Positions, Floats]:
    """Pick k arms that differ out of more."""
    picked = pick_apart(scores, live.points_of(rows), k=k, diversity=diversity)
    return np.take_along_axis(rows, picked, axis=1), np.take_along_axis(scores, picked, axis=1)


def _check_finite(costs: NDArray[np.int64]) -> None:
    wrong = np.flatnonzero(costs[:, 0] < 0)
    if len(wrong):
        raise NotFiniteError(
            f"The contexts need finite numbers of ordinary size: got a row, {wrong[0]}, that is "
            f"infinite once embedded ({len(wrong)} such rows). Scale or drop those rows."
        )


def _any_rows(
    live: Live, seeds: NDArray[np.uint64], k: int, eligible: Any
) -> tuple[Positions, Floats, NDArray[np.int64]]:
    """Draw rows (B, k), each as likely as another, as a bandit does that learned nothing."""
    gates = gates_for(live, eligible, contexts=len(seeds))
    through = cache(lambda number: live.rows_through(gates[number]))
    rows = np.full((len(seeds), k), -1, dtype=np.int32)
    for place, seed in enumerate(seeds.tolist()):
        some = through(place if len(gates) > 1 else 0)
        drawn = draw_eligible_row(seed, some, total=live.rows, count=k)
        rows[place, : len(drawn)] = drawn
    scores = np.where(rows >= 0, 0.0, -np.inf).astype(np.float32)
    return rows, scores, np.zeros((len(seeds), 3), dtype=np.int64)


def _with(numbers: Floats, place: int, number: float) -> Floats:
    changed = numbers.copy()
    changed[place] = number
    frozen: Floats = still(changed)
    return frozen
