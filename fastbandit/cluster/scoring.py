"""Choose arms for files of contexts with a frozen bandit, on many workers; a restart goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fastbandit import __version__
from fastbandit.cluster.contexts import (
    Columns,
    Part,
    RowReader,
    Source,
    find_columns,
    find_sources,
    parts_of,
    read_contexts,
)
from fastbandit.cluster.engine import Engine, HereEngine
from fastbandit.cluster.places import Folder, absolute, fetch_frozen, find_frozen, plain
from fastbandit.errors import DataError, InputError, SettingError, SnapshotError
from fastbandit.files.manifest import MANIFEST as FROZEN_MANIFEST
from fastbandit.files.manifest import read_manifest, seal
from fastbandit.noise.philox import decision_seeds
from fastbandit.packages import needed
from fastbandit.progress import Progress, silent
from fastbandit.runtime.folder import FORMAT as FROZEN_FORMAT
from fastbandit.runtime.folder import KIND
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.types import Decision

FORMAT = 1
MANIFEST, SUCCESS = "_manifest.json", "_SUCCESS.json"
OURS = ("row", "arm", "score", "arms", "scores", "version")
"""Columns of what is written; contexts that are kept may not be called so."""
_FEWEST, _MOST = 8_192, 65_536  # rows of a part
_PARTS = 500  # of all rows, where that makes parts neither small nor large
_BUNDLE = 8  # parts that a worker is given at a time
_TRIED = 8  # rows that are decided for before the work


@dataclass(frozen=True)
class Plan:
    """What is scored, and how: all that a worker has to know."""

    frozen: str
    digest: str
    version: int
    ids_as: str
    out: str
    columns: Columns
    k: int
    explore: bool
    seed: int
    eligible: Any
    rows: int

    def manifest(self, sources: Sequence[Source]) -> dict[str, Any]:
        """Give what has to be the same when work goes on."""
        told = {name: value for name, value in asdict(self).items() if name != "out"}
        inputs = [
            {"url": source.url, "size": source.size, "stamp": source.stamp, "rows": source.rows}
            for source in sources
        ]
        told["frozen"] = told.pop("digest")
        return {"format": FORMAT, "kind": "scores", "fastbandit": __version__, **told} | {
            "inputs": inputs
        }


@dataclass(frozen=True)
class Scored:
    """What was scored: files, rows, and what this run did of it.

    `repeated` parts were begun before, or by a worker that died, and done again.
    """

    out: str
    inputs: int
    rows: int
    parts: int
    scored: int
    skipped: int
    repeated: int
    arms: int
    version: int
    workers: int
    seconds: float


def score_contexts(
    frozen: str | Path,
    contexts: str | Path,
    out: str | Path,
    *,
    k: int = 1,
    explore: bool = True,
    seed: int = 0,
    columns: Sequence[str] = (),
    ids: str | None = None,
    keep: Sequence[str] = (),
    eligible: Any = None,
    rows: int | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Scored:
    """Choose `k` arms for each row of Parquet files, and write them as Parquet into a folder.

    Places are paths or URLs that fsspec knows. A row's draw depends on `seed` and its number
    alone, so neither workers nor parts change an arm. Where a run was stopped, the same call
    goes on with the parts that are missing. `columns`, `ids` and `keep` name columns of the
    context, of its id, and those to copy; `rows` is the size of a part.
    """
    started = time.perf_counter()
    place = find_frozen(str(frozen))
    folder = fetch_frozen(place)
    bandit = FrozenBandit.load(folder)
    _, catalogue, codec = bandit.parts
    sources = find_sources(str(contexts), progress=progress)
    total = sum(source.rows for source in sources)
    plan = Plan(
        frozen=place,
        digest=_digest_of(folder),
        version=bandit.version,
        ids_as=_ids_as(catalogue.ids),
        out=absolute(str(out)),
        columns=find_columns(sources, codec.context.kind, columns=columns, ids=ids, keep=keep),
        k=k,
        explore=explore,
        seed=seed,
        eligible=eligible,
        rows=rows or min(max(total // _PARTS, _FEWEST), _MOST),
    )
    _check_apart(plan.out, absolute(str(contexts)))
    _try(plan, sources, bandit)
    scored, repeated, parts = _score(plan, sources, engine or HereEngine(), progress=progress)
    return Scored(
        out=plan.out,
        inputs=len(sources),
        rows=total,
        parts=parts,
        scored=scored,
        skipped=total - scored,
        repeated=repeated,
        arms=len(bandit),
        version=plan.version,
        workers=1 if engine is None else engine.workers,
        seconds=time.perf_counter() - started,
    )


# -- before the work


def _digest_of(folder: Path) -> str:
    return seal(read_manifest(folder / FROZEN_MANIFEST, kind=KIND, format=FROZEN_FORMAT))


def _ids_as(ids: Any) -> str:
    """Tell how ids are written: as int64 or string where all are such, else as JSON."""
    if ids.is_numbered:
        return "int64"
    listed = list(getattr(ids, "table", ids))
    kinds = set(map(type, listed))
    if kinds == {int} and all(-(2**63) <= id < 2**63 for id in listed):
        return "int64"
    return "string" if kinds == {str} else "json"


def _check_apart(out: str, contexts: str) -> None:
    if f"{out}/".startswith(f"{contexts}/"):
        raise SettingError(
            f"Scores need a folder outside of the contexts, or they would be read as such: got "
            f"{out} within {contexts}. Choose another with --out."
        )


def _try(plan: Plan, sources: Sequence[Source], bandit: FrozenBandit) -> None:
    """Decide for a few rows: what is asked wrongly shows before the work, and code is compiled."""
    wrong = next((column for column in plan.columns.keep if column in OURS), None)
    if wrong is not None:
        raise SettingError(
            f"A column that is kept needs a name of its own: {wrong!r} is one of ours "
            f"({', '.join(OURS)}). Rename it, or leave it out of --keep."
        )
    if isinstance(plan.eligible, dict) and bandit.columns is None:
        raise SettingError(
            f"A predicate needs columns of the arms to speak of: got {_short(plan.eligible)}, and "
            f"the arms in {plain(plan.frozen)} have none. Name ids instead, or give them columns: "
            f"with arms.columns of a service, or with set_columns() before save()."
        )
    scorer = Scorer(plan, bandit)
    for part in parts_of(sources, _TRIED)[:1]:
        scorer.decide(part, scorer.read(part))


def _agree(folder: Folder, manifest: dict[str, Any]) -> None:
    """Write what is scored, or make sure that what is there was scored just so."""
    before = folder.read_json(MANIFEST)
    if before is None:
        if any(name.startswith("part-") for name in folder.names()):
            raise SettingError(
                f"Scores need a folder of their own: {plain(folder.url)} holds parts and no "
                f"{MANIFEST}. Choose another with --out, or empty it."
            )
        folder.write_json(MANIFEST, manifest)
        return
    manifest = json.loads(json.dumps(manifest))
    other = next((name for name in manifest if before.get(name) != manifest[name]), None)
    if other is not None:
        raise SettingError(
            f"Work goes on only with what it began with: {other} was "
            f"{_short(before.get(other))} in {plain(folder.url)}/{MANIFEST}, and is "
            f"{_short(manifest[other])}. Ask for the same, or choose another folder with --out."
        )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


# -- the work


def _score(
    plan: Plan, sources: Sequence[Source], engine: Engine, *, progress: Progress
) -> tuple[int, int, int]:
    """Score what is missing; give the rows of that, how many parts were repeated, and all parts."""
    folder, parts = Folder(plan.out), parts_of(sources, plan.rows)
    folder.make()
    _agree(folder, plan.manifest(sources))
    begun, there = folder.sweep(), folder.names()
    todo = [part for part in parts if part.name not in there]
    bundles = _bundled(todo, engine.workers)
    steps, done = [0] * len(bundles), len(parts) - len(todo)
    progress(done, len(parts), "Scoring")
    with closing(engine.run(Scorer(plan), bundles)) as news:
        for told in news:
            if told.error is not None:
                raise DataError(told.error)
            steps[told.job] = len(bundles[told.job]) if told.is_over else told.steps
            progress(done + sum(steps), len(parts), "Scoring")
    begun |= folder.sweep()
    rows, scored = (sum(part.rows for part in some) for some in (parts, todo))
    counts = {"rows": rows, "parts": len(parts)}
    folder.write_json(SUCCESS, {"format": FORMAT, "kind": "scores", **counts})
    return scored, len(begun & {part.name for part in todo}), len(parts)


def _bundled(parts: Sequence[Part], workers: int) -> list[list[Part]]:
    """Put parts together that follow each other; fewer towards the end, so that all end at once."""
    bundles: list[list[Part]] = []
    first = 0
    while first < len(parts):
        size = max(1, min(_BUNDLE, (len(parts) - first) // (4 * workers)))
        bundles.append(list(parts[first : first + size]))
        first += size
    return bundles


class Scorer:
    """Scores parts: reads the next and writes the last while it decides."""

    def __init__(self, plan: Plan, bandit: FrozenBandit | None = None) -> None:
        self.plan, self.out, self.reader = plan, Folder(plan.out), RowReader(plan.columns)
        if bandit is not None:
            self.bandit = bandit

    def __call__(self, parts: Sequence[Part], *, tell: Callable[[int], None]) -> None:
        """Score parts and write them; those that are there already are left."""
        with ThreadPoolExecutor(1) as reading, ThreadPoolExecutor(1) as writing:
            writes: list[Future[None]] = []
            for done, (part, table) in enumerate(_ahead(reading, self.read_missing, parts)):
                tell(done)
                if table is not None:
                    self.out.begin(part.name)
                    answer = self.decide(part, table)
                    if writes:
                        writes.pop().result()
                    writes.append(writing.submit(self.write, part, answer))
            for write in writes:
                write.result()

    @cached_property
    def bandit(self) -> FrozenBandit:
        """The bandit, mapped into memory: workers of a machine share it."""
        folder = fetch_frozen(self.plan.frozen)
        if _digest_of(folder) != self.plan.digest:
            raise SnapshotError(
                f"All workers need the same {KIND}: {folder} holds another than the run began "
                f"with. Put that one back, or score into another folder."
            )
        return FrozenBandit.load(folder, verify=False)

    def read_missing(self, part: Part) -> Any:
        """Read a part, or give None where it is written already."""
        return None if self.out.has(part.name) else self.read(part)

    def read(self, part: Part) -> Any:
        """Read the rows of a part."""
        return self.reader.read(part.source, part.first, part.rows)

    def decide(self, part: Part, table: Any) -> Any:
        """Choose arms for a part; give the table that is written."""
        plan, where = self.plan, part.source.name
        kind = self.bandit.parts[2].context.kind
        contexts = read_contexts(table, plan.columns, kind, where=where, first=part.first)
        try:
            decision = self.bandit.select(
                contexts,
                k=plan.k,
                explore=plan.explore,
                eligible=plan.eligible,
                seeds=decision_seeds(plan.seed, part.row, part.rows),
                threads=1,
            )
        except InputError as error:
            last = part.first + part.rows - 1
            raise DataError(f"In rows {part.first} to {last} of {where}: {error}") from error
        return self._answer(part, table, decision)

    def write(self, part: Part, answer: Any) -> None:
        """Write what was chosen for a part."""
        import pyarrow
        from pyarrow import parquet

        sink = pyarrow.BufferOutputStream()
        parquet.write_table(answer, sink, compression="zstd")
        self.out.write(part.name, memoryview(sink.getvalue()))

    def _answer(self, part: Part, table: Any, decision: Decision) -> Any:
        pyarrow = needed("pyarrow", what="Scoring files", extra="score")
        kept = {name: table.column(name) for name in self.plan.columns.keep}
        numbers = np.arange(part.row, part.row + part.rows)
        version = np.full(part.rows, decision.version)
        chosen = _chosen(pyarrow, decision, k=self.plan.k, ids_as=self.plan.ids_as)
        return pyarrow.table({**kept, "row": numbers, **chosen, "version": version})


def _chosen(pyarrow: Any, decision: Decision, *, k: int, ids_as: str) -> dict[str, Any]:
    """Give arms and scores as columns: plain ones for one arm, lists for more."""
    kind = pyarrow.int64() if ids_as == "int64" else pyarrow.string()
    arms: Any = decision.arms
    if k == 1:
        arms = map(json.dumps, arms) if ids_as == "json" else arms
        return {"arm": pyarrow.array(list(arms), kind), "score": decision.scores[:, 0]}
    if ids_as == "json":
        arms = [list(map(json.dumps, some)) for some in arms]
    scores = [found[: len(some)] for found, some in zip(decision.scores, arms, strict=True)]
    return {
        "arms": pyarrow.array(arms, pyarrow.list_(kind)),
        "scores": pyarrow.array(scores, pyarrow.list_(pyarrow.float32())),
    }


def _ahead(
    pool: ThreadPoolExecutor, read: Callable[[Part], Any], parts: Sequence[Part]
) -> Iterator[tuple[Part, Any]]:
    """Give each part as it was read, while the next one is being read."""
    waiting = pool.submit(read, parts[0]) if parts else None
    for place, part in enumerate(parts):
        assert waiting is not None
        table = waiting.result()
        if place + 1 < len(parts):
            waiting = pool.submit(read, parts[place + 1])
        yield part, table
