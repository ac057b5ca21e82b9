"""examine(): all checks in their order; one that fails by itself is a finding too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from fastbandit.doctor import compiler, data_folder, installed, machine, speed, threads
from fastbandit.doctor.finding import Finding, fine
from fastbandit.progress import Progress, silent

Check: TypeAlias = Callable[[], Finding | Iterable[Finding]]


def examine(
    data_dir: Path | None = None, *, is_warming: bool = False, progress: Progress = silent
) -> list[Finding]:
    """Make all checks; those that need torch are made where it is.

    Decisions are timed where they are compiled already, or with `is_warming`, which may take
    half a minute.
    """
    checks = checks_for(data_dir, is_warming=is_warming)
    findings: list[Finding] = []
    for done, (name, check) in enumerate(checks.items()):
        progress(done, len(checks), name)
        findings += made(name, check)
    progress(len(checks), len(checks), "Done")
    return findings


def checks_for(data_dir: Path | None, *, is_warming: bool) -> dict[str, Check]:
    """Give the checks by name, in their order."""
    quota = threads.quota_of()
    usable = threads.usable_cores(quota)
    checks: dict[str, Check] = {
        "Python": installed.check_python,
        "fastbandit": installed.check_fastbandit,
        "packages": installed.check_packages,
        "cores": lambda: threads.check_cores(quota),
        "thread variables": lambda: threads.check_variables(os.environ, usable),
    }
    if find_spec("torch") is not None:
        checks["torch threads"] = lambda: threads.check_torch_threads(usable)
        checks["GPU"] = machine.check_gpu
    checks |= {
        "OpenMP": threads.check_openmp,
        "numba": lambda: compiler.check_numba(os.environ),
        "processor": compiler.check_processor,
    }
    if compiler.is_compiling(os.environ):
        checks["decisions"] = lambda: decisions(is_warming=is_warming)
    checks |= {
        "memory": machine.check_memory,
        "open files": machine.check_open_files,
        "clock": machine.check_clock,
    }
    if data_dir is not None:
        checks["data folder"] = lambda: data_folder.check_data_folder(data_dir)
    return checks


def decisions(*, is_warming: bool) -> Iterator[Finding]:
    """Look at compiled code, and time it where that does not mean to compile it first."""
    if is_warming and not compiler.is_warm():
        timed = speed.measure_speed()
        yield fine("compiled code", f"made in {timed.first_s:.0f} s: {compiler.cache_folder()}")
        yield speed.finding_for_speed(timed)
        return
    kept = compiler.check_cache()
    yield kept
    if kept.state == "ok":
        yield speed.check_speed()


def made(name: str, check: Check) -> list[Finding]:
    """Make a check; an error that it does not expect is what it found."""
    try:
        found = check()
        return [found] if isinstance(found, Finding) else list(found)
    except Exception as error:
        why = "This check could not be made, so something is not as fastbandit expects."
        return [Finding(name, "broken", f"{type(error).__name__}: {error}", why, "Report this.")]
