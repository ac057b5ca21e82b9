"""`python -m lab bench peers`: the time of one decision, of other libraries beside ours.

Every peer runs in a process of its own, with one thread, over the same arms and contexts. They
alternate in short rounds, so that a noisy moment hits all of them.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from statistics import median

import click

from fastbandit.cluster.engine import describe_error
from fastbandit.cluster.local_engine import one_thread_per_process
from fastbandit.declaration import known_name
from fastbandit.progress import progress_bar
from lab.benchmarks.peer_libraries import OURS, PEERS, Peer, task_of
from lab.benchmarks.reporting import Tick, arms_option
from lab.experiments.sizes import sizes_of
from lab.planning.timing import decide_for

ROUND_SECONDS = 0.3
BUILD_SECONDS = 60.0
DECISION_SECONDS = 5.0

Round = Callable[[float], list[float] | str]
"""Decides again and again for so many seconds: gives the seconds of each, or why it cannot."""


@dataclass(frozen=True)
class Limits:
    """How long a peer is timed, and how slow it may be to be timed at all."""

    seconds: float = 2.0
    round_seconds: float = ROUND_SECONDS
    build: float = BUILD_SECONDS
    decision: float = DECISION_SECONDS


@dataclass(frozen=True)
class Row:
    """The median time of one decision of one peer; None where it was not timed."""

    peer: str
    arms: int
    dim: int
    us: float | None
    ratio: float | None
    note: str


def rows_of(
    taken: Mapping[str, Sequence[float]],
    notes: Mapping[str, str],
    *,
    arms: int,
    dim: int,
) -> list[Row]:
    """Return the median seconds of each peer's decisions, and their ratios to ours."""
    medians = {name: 1e6 * median(seconds) for name, seconds in taken.items() if seconds}
    ours = medians.get(OURS)
    rows = []
    for name, note in notes.items():
        us = medians.get(name)
        ratio = None if us is None or ours is None else us / ours
        rows.append(Row(name, arms, dim, us, ratio, note))
    return rows


# -- alternation


def alternate(
    peers: Mapping[str, Round],
    *,
    seconds: float,
    round_seconds: float = ROUND_SECONDS,
    tick: Tick = lambda name: None,
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Let each peer decide for `round_seconds`, then the next, until each had `seconds`.

    Return the seconds of all decisions, and why some peers stopped early.
    """
    taken: dict[str, list[float]] = {name: [] for name in peers}
    stopped: dict[str, str] = {}
    todo = list(peers)
    while todo:
        for name in tuple(todo):
            answer = peers[name](min(round_seconds, max(seconds - sum(taken[name]), 0.0)))
            if isinstance(answer, str):
                stopped[name] = answer
            else:
                taken[name] += answer
            if name in stopped or sum(taken[name]) >= seconds:
                todo.remove(name)
                tick(name)
    return taken, stopped


# -- processes


class PeerProcess:
    """A peer in a process of its own, which waits for its rounds."""

    def __init__(self, peer: Peer, *, arms: int, dim: int, seed: int) -> None:
        context = get_context("spawn")
        self._connection, there = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_serve, args=(there, peer, arms, dim, seed), daemon=True
        )
        with one_thread_per_process():
            self._process.start()
        there.close()

    def get_ready(self, limits: Limits) -> str | None:
        """Wait until it is built and has decided; return the reason where it is left out."""
        built = self._hear(limits.build, f"left out: building takes over {limits.build:g} s")
        if isinstance(built, str):
            return built
        late = f"left out: a decision takes over {limits.decision:g} s"
        decided = self._hear(limits.decision, late)
        return decided if isinstance(decided, str) else None

    def run_round(self, seconds: float) -> list[float] | str:
        """Let it decide for so many seconds."""
        try:
            self._connection.send(seconds)
        except OSError:
            return self._ended()
        return self._hear(None, "")

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _hear(self, seconds: float | None, late: str) -> list[float] | str:
        try:
            if not self._connection.poll(seconds):
                return late
            answer: list[float] | str = self._connection.recv()
        except (EOFError, OSError):
            return self._ended()
        return answer

    def _ended(self) -> str:
        self._process.join()
        return f"failed: its process ended with {self._process.exitcode}; memory may have run out"


def _serve(connection: Connection, peer: Peer, arms: int, dim: int, seed: int) -> None:
    """Build a peer, let it decide twice, then alternate until the parent ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _hush()
    try:
        decide = peer.make(task_of(arms, dim, seed=seed))
        decide(0)  # what a library does once, such as compiling, is part of building
        connection.send([])
        connection.send(decide_for(decide, 0.0, first=1))
        number = 2
        while True:
            taken = decide_for(decide, connection.recv(), first=number)
            number += len(taken)
            connection.send(taken)
    except EOFError:
        return
    except Exception as error:
        connection.send(f"failed: {describe_error(error)}")


def _hush() -> None:
    """Let nothing that a library prints come between the lines of the parent."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


# -- the measurement


def measure_peers(
    peers: Sequence[Peer],
    *,
    arms: int,
    dim: int,
    seed: int = 0,
    limits: Limits | None = None,
    tick: Tick = lambda name: None,
) -> list[Row]:
    """Time the decisions of peers among so many arms, in alternation."""
    limits = limits or Limits()
    notes = {peer.name: note_on(peer) for peer in peers}
    ready: dict[str, PeerProcess] = {}
    try:
        for peer in peers:
            if find_spec(peer.needs) is not None:
                started = PeerProcess(peer, arms=arms, dim=dim, seed=seed)
                ready[peer.name] = started
                reason = started.get_ready(limits)
                if reason is not None:
                    notes[peer.name] = reason
                    ready.pop(peer.name).stop()
            tick(peer.title)
        rounds = {name: process.run_round for name, process in ready.items()}
        taken, stopped = alternate(
            rounds, seconds=limits.seconds, round_seconds=limits.round_seconds, tick=tick
        )
    finally:
        for process in ready.values():
            process.stop()
    return rows_of(taken, notes | stopped, arms=arms, dim=dim)


def note_on(peer: Peer) -> str:
    """Say which version is timed and what to know about it, or how to install it."""
    if find_spec(peer.needs) is None:
        return f"not installed: pip install 'fastbandit[{peer.extra}]'"
    try:
        found = f"{peer.package} {version(peer.package)}"
    except PackageNotFoundError:
        found = peer.package
    return f"{found}; {peer.note}" if peer.note else found


# -- the command


@click.command("peers")
@arms_option("1000,10000,100000")
@click.option(
    "--dim",
    default=16,
    show_default=True,
    type=click.IntRange(1),
    help="Features of contexts and of arms.",
)
@click.option(
    "--peers",
    default="all",
    show_default=True,
    help=f"Comma-separated, of {', '.join(peer.name for peer in PEERS)}.",
)
@click.option(
    "--seconds",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.0),
    help="Time each peer for so long, at each number of arms.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of the arms.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def peers_command(
    arms: str, dim: int, peers: str, seconds: float, seed: int, as_json: bool
) -> None:
    """Time one decision of other libraries beside ours: the same arms, the same contexts.

    Each runs in a process of its own with one thread, and they alternate. What takes over a
    minute to build or five seconds to decide is left out.
    """
    sizes, chosen = sizes_of(arms), _read_peers(peers)
    rows: list[Row] = []
    ended: list[str] = []
    with progress_bar("Peers") as progress:

        def tick(name: str) -> None:
            ended.append(name)
            progress(len(ended), 2 * len(sizes) * len(chosen), name)

        for size in sizes:
            limits = Limits(seconds=seconds)
            rows += measure_peers(chosen, arms=size, dim=dim, seed=seed, limits=limits, tick=tick)
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=1, allow_nan=False))
    else:
        print_rows(rows)


def print_rows(rows: Sequence[Row]) -> None:
    """Print one table, a section for each number of arms, and the notes below it."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"One decision, {rows[0].dim} features, one thread", box=SIMPLE_HEAD)
    table.add_column("arms", justify="right")
    table.add_column("peer", no_wrap=True)
    table.add_column("µs, median", justify="right", no_wrap=True)
    table.add_column("÷ ours", justify="right", no_wrap=True)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        is_last = after is not None and after.arms != row.arms
        cells = (f"{row.arms:,}", title_of(row.peer), worded(row.us), worded(row.ratio))
        table.add_row(*cells, end_section=is_last)
    console = Console(highlight=False, markup=False)
    console.print(table)
    for line in footnotes(rows):
        console.print(line)


def footnotes(rows: Sequence[Row]) -> list[str]:
    """Say each note once, with the numbers of arms where it does not hold for all."""
    sizes: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        sizes.setdefault((row.peer, row.note), []).append(row.arms)
    everywhere = len({row.arms for row in rows})
    lines = []
    for (peer, note), arms in sizes.items():
        where = "" if len(arms) == everywhere else f", {' and '.join(f'{n:,}' for n in arms)} arms"
        lines.append(f"{title_of(peer)}{where}: {note}")
    return lines


def title_of(name: str) -> str:
    """Return what a table calls a peer."""
    return next((peer.title for peer in PEERS if peer.name == name), name)


def worded(number: float | None) -> str:
    """Write a number with three digits or more; a dash where there is none."""
    if number is None:
        return "–"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _read_peers(text: str) -> list[Peer]:
    known = {peer.name: peer for peer in PEERS}
    if text == "all":
        return list(PEERS)
    names = dict.fromkeys(name.strip() for name in text.split(","))
    for name in names:
        known_name("peer", name, tuple(known))
    return [known[name] for name in names]
