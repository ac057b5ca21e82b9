"""Saved bandits that were changed, with their hashes made anew: refused by name, or they decide.

A child process changes, loads and asks many of them, one after the other: what ends it is a crash,
what takes too long is a hang, and any error that is none of fastbandit's own is counted, too.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import click
import numpy as np

from fastbandit.errors import FastbanditError, SnapshotError
from fastbandit.files.manifest import MANIFEST, digest_of
from fastbandit.files.mapped import Arrays, map_arrays, pieces_of
from fastbandit.progress import Progress, progress_bar, silent
from lab.faults.ending import end_with_report
from lab.faults.mutant_changes import change_arrays, change_header, change_notes
from lab.faults.mutant_originals import FROZEN, ORIGINALS, ask, make_original

_SECONDS = 30.0
_WARM_SECONDS = 1_800.0  # compiling is no hang
_MEMORY = 16 * 2**30
_SHOWN = 20


@dataclass
class MutantReport:
    """What became of changed folders; `wrong` says of some of those which they were."""

    mutants: int
    seed: int
    refused: int = 0
    decided: int = 0
    typed: int = 0
    untyped: int = 0
    crashes: int = 0
    hangs: int = 0
    originals: int = 0
    slowest_seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return self.untyped == self.crashes == self.hangs == 0


def throw_mutants(count: int, *, seed: int = 0, progress: Progress = silent) -> MutantReport:
    """Change so many folders, load and ask each in a child, and count what became of them."""
    report = MutantReport(count, seed)
    with tempfile.TemporaryDirectory() as home:
        for name in ORIGINALS:
            make_original(name, Path(home) / name)
        frozen = [name for name in ORIGINALS if name.startswith(FROZEN)]
        names = [*ORIGINALS, *3 * frozen]
        report.originals = len(ORIGINALS)
        child = _Child(Path(home), ORIGINALS)
        with closing(child):
            for number in range(count):
                name = names[number % len(names)]  # frozen ones, which take less, more often
                began = time.monotonic()
                outcome, why = child.try_one(name, (seed, number))
                report.slowest_seconds = max(report.slowest_seconds, time.monotonic() - began)
                setattr(report, outcome, getattr(report, outcome) + 1)
                if outcome in ("untyped", "crashes", "hangs") and len(report.wrong) < _SHOWN:
                    report.wrong.append(f"{name}, mutant {number}, {outcome}: {why}")
                    click.echo(report.wrong[-1], err=True)
                progress(number + 1, count, "mutants")
    return report


class _Child:
    """A process that loads changed folders, started anew after it crashed or hung."""

    def __init__(self, home: Path, originals: tuple[str, ...]) -> None:
        self._home, self._originals = home, originals
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        given = (other, self._home, self._originals)
        self._process = context.Process(target=_serve, args=given, daemon=True)
        self._process.start()
        other.close()
        if not self._pipe.poll(_WARM_SECONDS):
            raise click.ClickException("A child needs half an hour to compile: it took longer.")
        problem = self._pipe.recv()
        if problem:
            raise click.ClickException(f"An original needs to load and to decide: {problem}")

    def try_one(self, name: str, seed: tuple[int, int]) -> tuple[str, str]:
        """Return what became of a mutant, and why."""
        try:
            self._pipe.send((name, seed))
            if self._pipe.poll(_SECONDS):
                return tuple(self._pipe.recv())
            outcome = "hangs", f"no answer within {_SECONDS:g} seconds"
        except (EOFError, OSError):
            self._process.join(5.0)
            outcome = "crashes", f"ended with {self._process.exitcode}"
        self.close()
        self._start()
        return outcome

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


# -- in the child


def _serve(pipe: Connection, home: Path, names: tuple[str, ...]) -> None:
    """Load and ask all originals, then changed ones as they are asked for."""
    import torch

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.RLIM_INFINITY))
    torch.set_num_threads(1)
    originals = {name: home / name for name in names}
    problem = ""
    for name, path in originals.items():
        outcome, why = _outcome(name, path)
        if outcome != "decided":
            problem = f"{name}: {outcome} ({why})"
    pipe.send(problem)
    while True:
        name, seed = pipe.recv()
        with tempfile.TemporaryDirectory(dir=home, prefix=".mutant-") as folder:
            done = mutate(originals[name], Path(folder), np.random.default_rng(seed))
            outcome, why = _outcome(name, Path(folder))
        pipe.send((outcome, f"{done}: {why}"))


def _outcome(name: str, folder: Path) -> tuple[str, str]:
    try:
        ask(name, folder)
    except SnapshotError as error:
        return "refused", str(error)
    except FastbanditError as error:
        return "typed", str(error)
    except Exception as error:
        return "untyped", f"{type(error).__name__}: {error}"[:300]
    return "decided", ""


def mutate(original: Path, folder: Path, rng: np.random.Generator) -> str:
    """Write a changed copy of a folder, with hashes made anew; return what was changed."""
    manifest = json.loads((original / MANIFEST).read_text(encoding="utf-8"))
    with (original / manifest["arrays"]["file"]).open("rb") as file:
        arrays: Arrays = {name: array.copy() for name, array in map_arrays(file).items()}
    done = []
    for _ in range(int(rng.integers(1, 4))):
        change: Callable[..., str] = change_notes if rng.random() < 0.25 else change_arrays
        done.append(change(manifest if change is change_notes else arrays, rng))
    content = b"".join(map(bytes, pieces_of(arrays)))
    if rng.random() < 0.1:
        content, what = change_header(content, rng)
        done.append(what)
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest["arrays"] = {"file": "arrays-0.safetensors", **entry}
    (folder / "arrays-0.safetensors").write_bytes(content)
    manifest.pop("sha256", None)
    text = json.dumps({**manifest, "sha256": digest_of(manifest)})
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return "; ".join(done)


# -- the command


@click.command("mutants")
@click.option("--mutants", type=click.IntRange(min=1), default=20_000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def mutants_command(mutants: int, seed: int, as_json: bool) -> None:
    """Change saved bandits, hashes made anew, and load and ask each in a child process.

    Ends with 1 if one crashed, hung, or raised an error that is none of fastbandit's own.
    """
    with progress_bar("Mutants") as progress:
        report = throw_mutants(mutants, seed=seed, progress=progress)
    end_with_report(report, asdict(report), as_json=as_json, show=_show, is_met=report.is_whole)


def _show(report: MutantReport) -> None:
    click.echo(
        f"{report.mutants:,} mutants of {report.originals} folders: {report.refused:,} refused, "
        f"{report.typed:,} with another error of ours, {report.decided:,} decided"
    )
    click.echo(
        f"{report.crashes:,} crashes, {report.hangs:,} hangs, {report.untyped:,} untyped errors; "
        f"the slowest took {report.slowest_seconds:.1f} s"
    )
    for one in report.wrong:
        click.echo(one)
