"""Chooses arms for files of contexts by a frozen bandit, on many workers; a restart resumes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import zip_longest
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
from fastbandit.cluster.engine import Engine, SerialEngine
from fastbandit.cluster.urls import Folder, absolute, fetch_frozen, find_frozen, plain
from fastbandit.errors import DataError, InputError, SettingError, SnapshotError
from fastbandit.files.manifest import MANIFEST as FROZEN_MANIFEST
from fastbandit.files.manifest import digest_of, read_manifest
from fastbandit.noise.philox import decision_seeds
from fastbandit.progress import Progress, silent
from fastbandit.runtime.folder import FORMAT as FROZEN_FORMAT
from fastbandit.runtime.folder import KIND
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.types import Decision

FORMAT = 1
MANIFEST, SUCCESS = "_manifest.json", "_SUCCESS.json"
OURS = ("row", "arm", "score", "arms", "scores", "version")
"""Columns of what is written; columns to keep may not have these names."""
_FEWEST, _MOST = 8_192, 65_536  # rows of a part
_PARTS = 500  # of all rows, where that makes parts neither small nor large
_BUNDLE = 8  # parts that a worker is given at a time
_REHEARSED = 8  # rows that are decided for before the work


@dataclass(frozen=True)
class ScoringSettings:
    """How contexts are scored: `k` arms each, by draws that `seed` and a row's number fix.

    `columns` are those of the context (patterns such as x_* too; a schema names its own), `ids`
    that of its id, `keep` those to copy beside. `eligible` are ids or a predicate. `rows` is the
    size of a part.
    """

    k: int = 1
    explore: bool = True
    seed: int = 0
    columns: Sequence[str] = ()
    ids: str | None = None
    keep: Sequence[str] = ()
    eligible: Any = None
    rows: int | None = None


_DEFAULTS = ScoringSettings()


@dataclass(frozen=True)
class Plan:
    """What is scored, and how: all that a worker has to know."""

    frozen: str
    digest: str
    version: int
    ids_as: str
    out: str
    columns: Columns
    rows: int
    settings: ScoringSettings

    def manifest(self, sources: Sequence[Source]) -> dict[str, Any]:
        """Return what has to be the same when work is resumed."""
        same = {name: getattr(self.settings, name) for name in ("k", "explore", "seed", "eligible")}
        same |= {name: getattr(self, name) for name in ("version", "ids_as", "rows")}
        same |= {"frozen": self.digest, "columns": asdict(self.columns)}
        known = ("url", "size", "stamp", "rows")
        inputs = [{name: getattr(source, name) for name in known} for source in sources]
        head = {"format": FORMAT, "kind": "scores", "fastbandit": __version__}
        return {**head, **same, "inputs": inputs}


@dataclass(frozen=True)
class Scored:
    """What was scored: files, rows, and what this run did of it.

    `repeated` parts were started before, or by a worker that died, and done again.
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
    settings: ScoringSettings = _DEFAULTS,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Scored:
    """Choose arms for each row of Parquet or CSV files, and write them as Parquet into a folder.

    All three are paths or URLs that fsspec knows. Neither workers nor parts change an arm. Where a
    run was stopped, the same call resumes with the parts that are missing.
    """
    started, engine = time.perf_counter(), engine or SerialEngine()
    url = find_frozen(str(frozen))
    folder = fetch_frozen(url)
    bandit = FrozenBandit.load(folder)
    sources = find_sources(str(contexts), progress=progress)
    total = sum(source.rows for source in sources)
    _, catalogue, codec = bandit.parts
    wanted = Columns(tuple(settings.columns), settings.ids, tuple(settings.keep))
    plan = Plan(
        frozen=url,
        digest=_digest_of(folder),
        version=bandit.version,
        ids_as=_ids_as(catalogue.ids),
        out=absolute(str(out)),
        columns=find_columns(sources, codec.context.kind, wanted),
        rows=settings.rows or min(max(total // _PARTS, _FEWEST), _MOST),
        settings=settings,
    )
    if f"{plan.out}/".startswith(f"{absolute(str(contexts))}/"):
        raise SettingError(
            f"Scores need a folder outside of the contexts, or they would be read as such: got "
            f"{plan.out} within {absolute(str(contexts))}. Choose another with --out."
        )
    _rehearse(plan, sources, bandit)
    parts = parts_of(sources, plan.rows)
    todo, repeated = _score(plan, sources, parts, engine, progress=progress)
    scored = sum(part.rows for part in todo)
    return Scored(
        out=plan.out,
        inputs=len(sources),
        rows=total,
        parts=len(parts),
        scored=scored,
        skipped=total - scored,
        repeated=repeated,
        arms=len(bandit),
        version=plan.version,
        workers=engine.workers,
        seconds=time.perf_counter() - started,
    )


def _digest_of(folder: Path) -> str:
    return digest_of(read_manifest(folder / FROZEN_MANIFEST, kind=KIND, format=FROZEN_FORMAT))


def _ids_as(ids: Any) -> str:
    """Return how ids are written: as int64 or string where all are such, else as JSON."""
    listed = [] if ids.is_numbered else list(getattr(ids, "table", ids))
    kinds = set(map(type, listed))
    if kinds <= {int} and all(-(2**63) <= id < 2**63 for id in listed):
        return "int64"
    return "string" if kinds == {str} else "json"


def _rehearse(plan: Plan, sources: Sequence[Source], bandit: FrozenBandit) -> None:
    """Decide for a few rows: wrong settings show before the work, and code is compiled."""
    wrong = next((column for column in plan.columns.keep if column in OURS), None)
    if wrong is not None:
        raise SettingError(
            f"A column that is kept needs a name of its own: {wrong!r} is one of ours "
            f"({', '.join(OURS)}). Rename it, or leave it out of --keep."
        )
    eligible = plan.settings.eligible
    if isinstance(eligible, dict) and bandit.columns is None:
        raise SettingError(
            f"A predicate needs columns of the arms to speak of: got {_short(eligible)}, and "
            f"the arms in {plain(plan.frozen)} have none. Name ids instead, or give them columns: "
            f"with arms.columns of a service, or with set_columns() before save()."
        )
    scorer = Scorer(plan, bandit)
    for part in parts_of(sources, _REHEARSED)[:1]:
        scorer.decide(part, scorer.read(part))


def _agree(folder: Folder, manifest: dict[str, Any]) -> None:
    """Write what is scored, or make sure that the folder's scores were made just so."""
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
            f"Work is resumed only with what it was started with: {other} was "
            f"{_short(before.get(other))} in {plain(folder.url)}/{MANIFEST}, and is "
            f"{_short(manifest[other])}. Ask for the same, or choose another folder with --out."
        )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _score(
    plan: Plan,
    sources: Sequence[Source],
    parts: Sequence[Part],
    engine: Engine,
    *,
    progress: Progress,
) -> tuple[list[Part], int]:
    """Score the parts that are missing; return these, and how many of them were repeated."""
    folder = Folder(plan.out)
    folder.make()
    _agree(folder, plan.manifest(sources))
    repeated, names = folder.sweep(), folder.names()
    todo = [part for part in parts if part.name not in names]
    bundles = _bundled(todo, engine.workers)
    steps, done = [0] * len(bundles), len(parts) - len(todo)
    progress(done, len(parts), "Scoring")
    with closing(engine.run(Scorer(plan), bundles)) as run:
        for news in run:
            if news.error is not None:
                raise DataError(news.error)
            steps[news.job] = len(bundles[news.job]) if news.is_over else news.steps
            progress(done + sum(steps), len(parts), "Scoring")
    repeated |= folder.sweep()
    counts = {"rows": sum(part.rows for part in parts), "parts": len(parts)}
    folder.write_json(SUCCESS, {"format": FORMAT, "kind": "scores", **counts})
    return todo, len(repeated & {part.name for part in todo})


def _bundled(parts: Sequence[Part], workers: int) -> list[list[Part]]:
    """Bundle parts that follow each other; fewer towards the end, so that all end at once."""
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

    def __call__(self, parts: Sequence[Part], *, report: Callable[[int], None]) -> None:
        """Score parts and write them; those that were written already are left."""
        with ThreadPoolExecutor(1) as reading, ThreadPoolExecutor(1) as writing:
            writes: list[Future[None]] = []
            for done, (part, table) in enumerate(_ahead(reading, self.read_missing, parts)):
                report(done)
                if table is not None:
                    self.out.start(part.name)
                    chosen = self.decide(part, table)
                    if writes:
                        writes.pop().result()
                    writes.append(writing.submit(self.write, part, chosen))
            for write in writes:
                write.result()

    @cached_property
    def bandit(self) -> FrozenBandit:
        """The bandit, mapped into memory: workers of a machine share it."""
        folder = fetch_frozen(self.plan.frozen)
        if _digest_of(folder) != self.plan.digest:
            raise SnapshotError(
                f"All workers need the same {KIND}: {folder} holds another than the run was "
                f"started with. Put that one back, or score into another folder."
            )
        return FrozenBandit.load(folder, verify=False)

    def read_missing(self, part: Part) -> Any:
        """Read a part; return None where it is written already."""
        return None if self.out.has(part.name) else self.read(part)

    def read(self, part: Part) -> Any:
        return self.reader.read(part.source, part.first, part.rows)

    def decide(self, part: Part, table: Any) -> Any:
        """Choose arms for a part; return the table that is written."""
        import pyarrow

        plan, settings, where = self.plan, self.plan.settings, part.source.name
        kind = self.bandit.parts[2].context.kind
        contexts = read_contexts(table, plan.columns, kind, where=where, first=part.first)
        try:
            decision = self.bandit.select(
                contexts,
                k=settings.k,
                explore=settings.explore,
                eligible=settings.eligible,
                seeds=decision_seeds(settings.seed, part.row, part.rows),
                threads=1,
            )
        except InputError as error:
            last = part.first + part.rows - 1
            raise DataError(f"In rows {part.first} to {last} of {where}: {error}") from error
        copied = {name: table.column(name) for name in plan.columns.keep}
        numbers = np.arange(part.row, part.row + part.rows)
        version = np.full(part.rows, decision.version)
        arms = _arm_columns(decision, k=settings.k, ids_as=plan.ids_as)
        return pyarrow.table({**copied, "row": numbers, **arms, "version": version})

    def write(self, part: Part, chosen: Any) -> None:
        import pyarrow
        from pyarrow import parquet

        sink = pyarrow.BufferOutputStream()
        parquet.write_table(chosen, sink, compression="zstd")
        self.out.write(part.name, memoryview(sink.getvalue()))


def _arm_columns(decision: Decision, *, k: int, ids_as: str) -> dict[str, Any]:
    """Return arms and scores as columns: plain ones for one arm, lists for more."""
    import pyarrow

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
    """Yield each part as it was read, while the next one is being read."""
    following = pool.submit(read, parts[0]) if parts else None
    for part, after in zip_longest(parts, parts[1:]):
        assert following is not None
        table = following.result()
        following = None if after is None else pool.submit(read, after)
        yield part, table
