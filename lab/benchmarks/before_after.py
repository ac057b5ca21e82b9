"""`python -m lab bench before-after`: one decision of this tree beside that of another commit.

Both decide with the same frozen folder, each in an interpreter of its own, in alternation: a noisy
moment of the machine meets both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click

from fastbandit.errors import SettingError
from lab.benchmarks.reporting import Tick, arms_option, output_options, over_sizes, print_rows
from lab.benchmarks.setups import silently
from lab.experiments.sizes import sizes_of
from lab.planning.untrained import untrained

ROOT = Path(__file__).parents[2]
HEADINGS = ("arms", "p50 µs before", "p50 µs after", "before ÷ after", "same arms")
_DIM, _ASKED = 8, 2_000  # the features are those of the contexts below
_STEPS = 2
_WORKER = """
import sys, time
import numpy as np
from fastbandit import FrozenBandit
frozen = FrozenBandit.load(sys.argv[1])
select_one = getattr(frozen, "select_one", None) or frozen.choose  # its name of before
contexts = np.random.default_rng(1).standard_normal((500, 8), dtype=np.float32)
chosen = [select_one(contexts[n % len(contexts)], seed=n) for n in range(len(contexts))]
print([one.row for one in chosen], flush=True)
for line in sys.stdin:
    taken = []
    for n in range(int(line)):
        before = time.perf_counter()
        select_one(contexts[n % len(contexts)], seed=n)
        taken.append(time.perf_counter() - before)
    print(sorted(taken)[len(taken) // 2], flush=True)
"""


@dataclass(frozen=True)
class Row:
    """The median time of one decision before and after, and whether both chose the same arms."""

    arms: int
    before_us: float
    after_us: float
    ratio: float
    is_same: bool

    def cells(self) -> tuple[str, ...]:
        """Return the row of a table."""
        times = (f"{number:.1f}" for number in (self.before_us, self.after_us))
        return (f"{self.arms:,}", *times, f"{self.ratio:.3f}", "yes" if self.is_same else "NO")


class Worker:
    """An interpreter that decides with a frozen folder by the code of one tree."""

    def __init__(self, tree: Path, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        environment["NUMBA_CACHE_DIR"] = str(tree / ".numba_cache" / "before-after")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tree,
            env=environment,
        )
        self.rows: list[int] = json.loads(self._said())

    def median_of(self, decisions: int) -> float:
        """Return the median seconds of so many decisions."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{decisions}\n")
        self._process.stdin.flush()
        return float(self._said())

    def end(self) -> None:
        self._process.communicate()

    def _said(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SettingError(
                f"The other tree needs to read a folder that this one froze: it ended with "
                f"{self._process.wait()}, see above. Name another commit with --before."
            )
        return line


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Lay a commit out in a folder beside, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary) / "tree"
        git = ["git", "-C", str(ROOT)]
        made = subprocess.run(
            [*git, "worktree", "add", "--detach", str(tree), commit], capture_output=True, text=True
        )
        if made.returncode:
            raise SettingError(
                f"--before needs a commit of this repository: got {commit!r} "
                f"({made.stderr.strip()}). Name one of `git log`."
            )
        try:
            yield tree
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(tree)], check=False)


def compare(before: Path, arms: int, *, repeats: int, tick: Tick = silently) -> Row:
    """Time decisions of both trees in alternation, over random arms."""
    tick("freezing")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "frozen"
        policy = untrained(arms, _DIM, hidden=None)
        policy.frozen(policy.search).save(folder)
        workers = [Worker(before, folder), Worker(ROOT, folder)]
        tick("deciding in alternation")
        taken: Sequence[list[float]] = ([], [])
        for _ in range(repeats):
            for worker, times in zip(workers, taken, strict=True):
                times.append(1e6 * worker.median_of(_ASKED))
        for worker in workers:
            worker.end()
    old, new = (median(times) for times in taken)
    ratio = median(one / two for one, two in zip(*taken, strict=True))
    return Row(arms, old, new, ratio, workers[0].rows == workers[1].rows)


@click.command("before-after")
@click.option("--before", required=True, help="The commit to compare with.")
@arms_option("10000,100000")
@click.option("--repeats", default=15, show_default=True, type=click.IntRange(1))
@output_options
def before_after_command(
    before: str, arms: str, repeats: int, doc: Path | None, as_json: bool
) -> None:
    """Time one decision of a frozen bandit by this tree and by that of another commit."""
    with checked_out(before) as tree:
        rows = over_sizes(
            "Before and after",
            sizes_of(arms),
            lambda size, tick: compare(tree, size, repeats=repeats, tick=tick),
            steps=_STEPS,
        )
    note = f"Median of {repeats} rounds of {_ASKED:,} decisions each, before {before}"
    print_rows("before-after", HEADINGS, rows, note=note, doc=doc, as_json=as_json)
