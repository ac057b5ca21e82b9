"""`python -m lab bench score`: files scored by one worker, by two, and after kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click

from fastbandit.cores import cores, one_thread
from fastbandit.errors import SettingError
from fastbandit.packages import needed
from lab.benchmarks.peers import worded
from lab.benchmarks.reporting import (
    Tick,
    arms_option,
    output_options,
    over_sizes,
    print_rows,
    read_doc,
    setup_options,
)
from lab.benchmarks.setups import Floats, Setup, contest_of, silently
from lab.experiments.sizes import sizes_of
from lab.experiments.timing import machine_of

WORKERS = (1, 2)
_FILES = 8
_LEARNING = 3  # ticks of `contest_of`
_PAUSE = 0.005  # seconds between two looks at the parts that are there
HEADINGS = (
    "arms",
    "contexts",
    "1 worker, /s",
    "2 workers, /s",
    "ratio",
    "repeated, worker killed",
    "repeated, command killed",
    "same",
)


@dataclass(frozen=True)
class Row:
    """Contexts scored a second among so many arms, by whole commands, and what kills cost.

    `repeated` are shares of all parts that were begun, not finished, and begun again. `is_same`
    says that all runs wrote the same bytes.
    """

    arms: int
    contexts: int
    dim: int
    hidden: int
    exploration: str
    cores: int
    parts: int
    one_per_s: float
    two_per_s: float
    ratio: float
    repeated_after_worker: float
    repeated_after_command: float
    is_same: bool

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        return (
            f"{self.arms:,}",
            f"{self.contexts:,}",
            f"{self.one_per_s:,.0f}",
            f"{self.two_per_s:,.0f}",
            worded(self.ratio),
            f"{self.repeated_after_worker:.2%}",
            f"{self.repeated_after_command:.2%}",
            "yes" if self.is_same else "no",
        )


@dataclass(frozen=True)
class Scoring:
    """The command, as it is run again and again in one folder."""

    folder: Path
    rows: int | None = None

    def command(self, out: str, workers: int) -> list[str]:
        """Return the command of a run."""
        paths = {"frozen": "frozen", "contexts": "contexts", "out": out}
        options = [f"--{name}={self.folder / path}" for name, path in paths.items()]
        sized = [] if self.rows is None else [f"--rows={self.rows}"]
        known = [sys.executable, "-m", "fastbandit", "score", "--json"]
        return [*known, *options, *sized, f"--workers={workers}"]

    def run(self, out: str, workers: int) -> tuple[float, dict[str, Any]]:
        """Run the command to its end; return the seconds it took, and what it printed."""
        started = time.perf_counter()
        done = subprocess.run(self.command(out, workers), capture_output=True, text=True)
        if done.returncode:
            raise SettingError(f"Scoring needs to end well: it said {done.stderr.strip()!r}.")
        return time.perf_counter() - started, dict(json.loads(done.stdout))

    def kill(self, out: str, *, parts: int, kill: Callable[[int], None]) -> dict[str, Any]:
        """Kill something once half of the parts are there, and go on; return what was printed."""
        command = self.command(out, WORKERS[-1])
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            while running.poll() is None and self.parts_in(out) < parts // 2:
                time.sleep(_PAUSE)
            if running.poll() is not None:
                raise SettingError(
                    f"A kill needs a run that lasts: it ended with {running.returncode} before "
                    f"half of {parts} parts were seen. Score more contexts."
                )
            kill(running.pid)
            output, _ = running.communicate()
        return (
            dict(json.loads(output)) if running.returncode == 0 else self.run(out, WORKERS[-1])[1]
        )

    def parts_in(self, out: str) -> int:
        """Count the parts that are there."""
        return len(list((self.folder / out).glob("part-*.parquet")))

    def bytes_of(self, out: str) -> list[bytes]:
        """Read all parts."""
        return [path.read_bytes() for path in sorted((self.folder / out).glob("part-*.parquet"))]


def measure_score(
    setup: Setup,
    folder: Path,
    *,
    contexts: int,
    repeats: int = 1,
    rows: int | None = None,
    tick: Tick = silently,
) -> Row:
    """Make a bandit and contexts, and score them; then kill a worker, and the command."""
    contest = contest_of(setup, contexts=contexts, tick=tick)
    contest.frozen().save(folder / "frozen")
    write_contexts(contest.contexts, folder / "contexts")
    scoring, taken = Scoring(folder, rows), {workers: [0.0] * repeats for workers in WORKERS}
    parts = 0
    for repeat in range(repeats):
        for workers in WORKERS:
            tick(f"{workers} workers")
            seconds, notes = scoring.run(f"{workers}-{repeat}", workers)
            taken[workers][repeat], parts = seconds, notes["parts"]
    tick("killing a worker")
    after_worker = scoring.kill("worker", parts=parts, kill=kill_worker)
    tick("killing the command")
    after_command = scoring.kill("command", parts=parts, kill=kill_command)
    one, two = (median(taken[workers]) for workers in WORKERS)
    wanted = scoring.bytes_of("1-0")
    return Row(
        arms=setup.arms,
        contexts=contexts,
        dim=setup.dim,
        hidden=contest.hidden,
        exploration=setup.exploration,
        cores=cores(),
        parts=parts,
        one_per_s=contexts / one,
        two_per_s=contexts / two,
        ratio=one / two,
        repeated_after_worker=after_worker["repeated"] / parts,
        repeated_after_command=after_command["repeated"] / parts,
        is_same=all(scoring.bytes_of(out) == wanted for out in ("2-0", "worker", "command")),
    )


def write_contexts(contexts: Floats, folder: Path) -> None:
    """Write contexts as columns x_0, x_1, … into a few files."""
    pyarrow = needed("pyarrow", what="Scoring files", extra="score")
    parquet = needed("pyarrow.parquet", what="Scoring files", extra="score")
    folder.mkdir(parents=True)
    size = -(-len(contexts) // _FILES)
    for number in range(_FILES):
        some = contexts[number * size : (number + 1) * size]
        columns = {f"x_{column}": some[:, column] for column in range(some.shape[1])}
        parquet.write_table(pyarrow.table(columns), folder / f"{number}.parquet")


def kill_worker(process: int) -> None:
    """Kill one of the workers that a process spawned."""
    for worker in workers_of(process)[:1]:
        _kill(worker)


def kill_command(process: int) -> None:
    """Kill a process and all its workers: those would else finish what they have begun."""
    for each in (process, *workers_of(process)):
        _kill(each)


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):  # it ended just now
        os.kill(process, signal.SIGKILL)


def workers_of(process: int) -> list[int]:
    """List the workers that a process spawned."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(") ")[2].split()[1])
            if parent == process and b"spawn_main" in (stat.parent / "cmdline").read_bytes():
                found.append(int(stat.parent.name))
        except OSError:  # it ended just now
            continue
    return found


# -- the command


@click.command("score")
@arms_option("1000000")
@click.option(
    "--contexts", default=1_000_000, show_default=True, type=click.IntRange(8), help="Rows."
)
@setup_options
@click.option(
    "--repeats", default=1, show_default=True, type=click.IntRange(1), help="Runs of each."
)
@click.option("--rows", type=click.IntRange(1), help="Rows of a part.  [default: 8192 to 65536]")
@output_options
def score_command(
    arms: str,
    contexts: int,
    dim: int,
    hidden: int | None,
    exploration: str,
    repeats: int,
    rows: int | None,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Score files by one worker and by two; kill a worker, and the command, and go on.

    Times are those of whole commands, from start to end. Before that a bandit learns from
    5,000 rounds of h3.
    """
    sizes = sizes_of(arms)
    if doc is not None:
        read_doc(doc)
    one_thread()

    def measure(size: int, tick: Tick) -> Row:
        setup = Setup(size, dim, hidden, exploration)
        with tempfile.TemporaryDirectory() as folder:
            return measure_score(
                setup, Path(folder), contexts=contexts, repeats=repeats, rows=rows, tick=tick
            )

    measured = over_sizes("Score", sizes, measure, steps=_LEARNING + 2 * repeats + 2)
    print_rows("score", HEADINGS, measured, note=note_on(measured), doc=doc, as_json=as_json)


def note_on(rows: Sequence[Row]) -> str:
    """Say what was timed, and on which machine."""
    first = rows[0]
    return (
        f"Scoring of files, {first.exploration}, {first.dim} features, {first.hidden} hidden units"
        f", {first.parts} parts,  {machine_of('cpu')} ({first.cores} there are)"
    )
