"""Which command made a published figure, and how a cheap one is made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastbandit.errors import DataError
from lab.bakeoff.bake import Baker, Job
from lab.bakeoff.results import Row, summarise
from lab.bakeoff.sets import Set, asked
from lab.bakeoff.systems import OURS, PLAIN, SYSTEMS, System
from lab.benchmarks import encode, explain
from lab.equal_latency import sets as peer_sets
from lab.equal_latency import systems as peer_systems
from lab.experiments.comparison import Standing, standings_of
from lab.experiments.report import load_results, results_page
from lab.experiments.results import Key
from lab.experiments.suite import run_job
from lab.published.pages import Figure, figures_in, read_number
from lab.size import measure

_CHEAP = ("Random", "Overall best arm", "Learned best arm", "LinearTS")
_SYNTHETIC = ("h1", "h2", "h3")
_ROUNDS, _BATCH = 5_000, 500  # of the suite "paper"
_HALF = 0.5  # of a ratio of times is what a shared machine moves it by
_MOST_SECONDS = 600.0
_CALLS = 2_000, 100  # of encodings and of explanations: a tenth and a fifth of what pages have


@dataclass(frozen=True)
class Again:
    """A published number, what came out now, by how much they may differ, and its rounding."""

    published: float
    now: float
    error: float
    rounding: float = 0.0

    @property
    def is_confirmed(self) -> bool:
        return abs(self.now - self.published) <= self.error

    @property
    def is_same(self) -> bool:
        """Whether it comes out to the last digit that is shown."""
        return abs(self.now - self.published) <= self.rounding


@dataclass(frozen=True)
class Source:
    """Figures of one command: which they are, and how one is made again, or why it is not."""

    command: str
    has: Callable[[Figure], bool]
    again: Callable[[Figure], Again] | None = None
    why_not: str = ""


def sources(folder: Path, results: Path | None = None) -> list[Source]:
    """Return all sources, the first that has a figure being its own.

    Runs are written into `folder`. With `results`, all cells of the results are made again from the
    files there.
    """
    from_files = [] if results is None else [_from_files(results)]
    return [
        Source("docs/quoted_tables.py", _is_quoted, why_not="copies of other tables"),
        *from_files,
        Source("python -m lab size", _of_size, _size_again()),
        Source("python -m lab experiment run paper", _of_plays, _plays_again(folder)),
        Source("python -m lab experiment bakeoff --sets digits", _of_digits, _digits_again(folder)),
        Source("python -m lab experiment equal-latency", _of_peers, _peers_again(folder)),
        Source("python -m lab bench encode", _of_encode, _encode_again()),
        Source("python -m lab bench explain", _of_explain, _explain_again()),
        *(Source(command, _marked(*marks), why_not=why) for command, marks, why in _DEAR),
        Source("typed", lambda figure: True, why_not="no command writes these tables"),
    ]


_RESULTS = "results: written by python -m lab report"
_DEAR = (
    ("python -m lab size", ("table of python -m lab size",), "settings, bars and timed rows"),
    (
        "python -m lab experiment run paper",
        (_RESULTS, "docs/results.md"),
        "hours, or seconds of other machines: --results docs/results makes them of kept rows",
    ),
    (
        "older code",
        ("docs/results-older.md",),
        "the result files were not kept",
    ),
    (
        "python -m lab experiment equal-latency",
        ("equal latency",),
        "hours: --keep makes the page of kept rows",
    ),
    ("python -m lab experiment bakeoff", ("bakeoff",), "minutes to hours, or peers' libraries"),
    ("python -m lab bench gpu", ("bench gpu",), "needs a GPU"),
    ("python -m lab bench log", ("bench log",), "needs PostgreSQL and a quiet machine"),
    ("python -m lab bench", ("bench",), "minutes on a quiet machine"),
    ("python -m lab estimators", ("coverage", "speed", "frozen-speed"), "minutes to hours"),
    ("python -m lab estimators open-bandit", ("open-bandit",), "needs the Open Bandit data"),
    ("python -m lab plan cluster", ("plan",), "minutes on a quiet machine"),
    ("python -m lab faults", ("campaigns",), "hours of campaigns against a service"),
)


def _marked(*names: str) -> Callable[[Figure], bool]:
    def has(figure: Figure) -> bool:
        mark = figure.place.mark
        starts = (mark.startswith((f"{name} ", f"{name}:")) or mark == name for name in names)
        return any(starts) or figure.place.page in names

    return has


def _is_quoted(figure: Figure) -> bool:
    return figure.place.mark.startswith("table from ")


def _within(figure: Figure, now: float, error: float) -> Again:
    """Compare a figure with what came out, which may differ by an error and by rounding."""
    shown = figure.number
    return Again(shown.value, now, error + shown.rounding, shown.rounding)


# -- the shape of the package


def _of_size(figure: Figure) -> bool:
    is_here = figure.place.mark == "table of python -m lab size" and figure.heading == "now"
    return is_here and not figure.name.startswith(("frozen select", "recorded decisions"))


def _size_again() -> Callable[[Figure], Again]:
    @cache
    def now() -> Mapping[str, float]:
        return {one.name: one.value for one in measure()}

    def again(figure: Figure) -> Again:
        return _within(figure, now()[figure.name], 0.0)

    return again


# -- what policies earned


def _of_plays(figure: Figure) -> bool:
    if figure.name not in _CHEAP:
        return False
    if _is_glance(figure):
        return figure.heading in _SYNTHETIC
    place = figure.place
    is_dataset = place.page == "docs/results.md" and place.heading in _SYNTHETIC
    return is_dataset and figure.heading in _MEASURES


def _is_glance(figure: Figure) -> bool:
    place = figure.place
    return place.mark == _RESULTS or (place.page, place.heading) == _GLANCE


_GLANCE = ("docs/results.md", "At a glance")
_MEASURES = ("share of best", "regret")


def _plays_again(folder: Path) -> Callable[[Figure], Again]:
    @cache
    def played(dataset: str, policy: str, seeds: int) -> Standing:
        keys = [Key(dataset, {}, policy, "default", _ROUNDS, _BATCH, seed) for seed in range(seeds)]
        (standing,) = standings_of([run_job(key, folder, None) for key in keys])
        return standing

    def again(figure: Figure) -> Again:
        if _is_glance(figure):
            (seeds,) = (row[figure.column] for row in figure.rows if row[0] == "seeds")
            standing = played(figure.heading, figure.name, int(seeds))
            assert standing.share is not None
            return _within(figure, standing.share.mean, standing.share.half or 0.0)
        standing = played(figure.place.heading, figure.name, int(figure.beside("seeds")))
        now = standing.regret if figure.heading == "regret" else standing.share
        assert now is not None
        return _within(figure, now.mean, figure.number.error or 0.0)

    return again


def _from_files(results: Path) -> Source:
    @cache
    def made() -> Mapping[tuple[object, ...], Figure]:
        text = results_page(load_results(results))
        return {_cell(one): one for one in figures_in(text, page="docs/results.md")}

    def has(figure: Figure) -> bool:
        return figure.place.page == "docs/results.md"

    def again(figure: Figure) -> Again:
        if _cell(figure) not in made():
            raise DataError(f"{results} needs the runs of this cell: there are none.")
        return _within(figure, made()[_cell(figure)].number.value, 0.0)

    return Source(f"python -m lab report {results}", has, again)


def _cell(figure: Figure) -> tuple[object, ...]:
    cells = figure.rows[figure.row]
    names = cells[:2] if read_number(cells[1]) is None else cells[:1]
    return (figure.place.heading, figure.headings, figure.column, names)


# -- beside other libraries


def _of_digits(figure: Figure) -> bool:
    is_here = figure.place.mark == "bakeoff" and figure.place.title.startswith("digits,")
    names = {system.name for system in SYSTEMS if system.family in (OURS, PLAIN)}
    return is_here and figure.heading in ("share", "last quarter") and figure.name in names


def _digits_again(folder: Path) -> Callable[[Figure], Again]:
    @cache
    def played(name: str, seeds: int) -> Row:
        (digits,) = asked(("digits",), rounds=None, batch=None)
        system = next(system for system in SYSTEMS if system.name == name)
        return _baked(folder / "bakeoff", digits, system, seeds)

    def again(figure: Figure) -> Again:
        row = played(figure.name, int(figure.beside("seeds")))
        mean = row.share if figure.heading == "share" else row.last_quarter
        assert mean is not None
        return _within(figure, mean.value, 2 * (figure.number.error or 0.0))

    return again


def _baked(folder: Path, entry: Set, system: System, seeds: int) -> Row:
    """Play a set with a system, and return the means over so many seeds."""
    baker = Baker(folder, None, _MOST_SECONDS)
    jobs = [Job(entry, system, seed) for seed in range(seeds)]
    results = [baker(job, report=lambda rounds: None) for job in jobs]
    for result in results:
        if reason := result.get("missing") or result.get("error"):
            raise DataError(f"{system.name} needs to play {entry.name}: {reason}")
    (row,) = summarise(results)
    return row


_PEER, _PEER_ARMS = "LinUCB", (1_000, 10_000)


def _of_peers(figure: Figure) -> bool:
    is_here = figure.place.mark == "equal latency" and figure.name == _PEER
    is_reward = figure.heading in ("share", "last quarter")
    return is_here and is_reward and figure.place.title in _peer_titles()


@cache
def _peer_titles() -> Mapping[str, Set]:
    rounds, batch = peer_sets.ROUNDS, peer_sets.BATCH
    entries = peer_sets.asked(peer_sets.FUNCTIONS, _PEER_ARMS, rounds=rounds, batch=batch)
    return {f"{e.title}, {rounds:,} rounds, batches of {batch}": e for e in entries}


def _peers_again(folder: Path) -> Callable[[Figure], Again]:
    (system,) = (one for one in peer_systems.SYSTEMS if one.name == _PEER)

    @cache
    def played(title: str, seeds: int) -> Row:
        return _baked(folder / "peers", _peer_titles()[title], system, seeds)

    def again(figure: Figure) -> Again:
        row = played(figure.place.title, int(figure.beside("seeds")))
        mean = row.share if figure.heading == "share" else row.last_quarter
        assert mean is not None
        return _within(figure, mean.value, 2 * (figure.number.error or 0.0))

    return again


# -- times, as ratios of two rows


def _of_encode(figure: Figure) -> bool:
    named = ("encode one dict", "select_one by name")
    is_here = figure.place.mark == "bench encode" and figure.heading == "figure"
    return is_here and figure.name in named


def _encode_again() -> Callable[[Figure], Again]:
    @cache
    def now() -> Mapping[str, float]:
        return {row.what: row.figure for row in encode.measure_one(calls=_CALLS[0])}

    def again(figure: Figure) -> Again:
        other = "select_one by an array"
        shown = {row[0]: row[figure.column] for row in figure.rows}
        return _ratio(figure, shown[other], now()[figure.name], now()[other])

    return again


def _of_explain(figure: Figure) -> bool:
    is_here = figure.place.mark == "bench explain" and figure.heading == "CPU ms, median"
    return is_here and figure.rows[figure.row][:2] != _YARDSTICK


_YARDSTICK = ("frozen", "20")


def _explain_again() -> Callable[[Figure], Again]:
    @cache
    def now() -> Mapping[tuple[str, ...], float]:
        rows = [
            row
            for size in explain.SIZES
            for row in explain.measure(size, arms=2_000, calls=_CALLS[1])
        ]
        return {(row.what, str(row.features)): row.median_ms for row in rows}

    def again(figure: Figure) -> Again:
        shown = {row[:2]: row[figure.column] for row in figure.rows}
        mine = figure.rows[figure.row][:2]
        return _ratio(figure, shown[_YARDSTICK], now()[mine], now()[_YARDSTICK])

    return again


def _ratio(figure: Figure, other: str, now: float, other_now: float) -> Again:
    """Compare a time over another of its table, then and now: seconds are of a machine."""
    shown = read_number(other)
    assert shown is not None
    published = figure.number.value / shown.value
    return Again(published, now / other_now, _HALF * published)
