"""Checks of cores, and of the threads that are told to use them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from fastbandit.cores import cores
from fastbandit.doctor.finding import Finding, fine

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_WAITING = "Threads beyond the cores wait for one another: each step ends with the slowest."


def quota_of(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Give how many cores' time a container may use, or None where there is no limit."""
    try:
        limit, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            limit = (root / "cpu/cpu.cfs_quota_us").read_text()
            period = (root / "cpu/cpu.cfs_period_us").read_text()
        except OSError:
            return None
    if limit.strip() == "max" or int(limit) <= 0:
        return None
    return int(limit) / int(period)


def check_cores(quota: float | None) -> Finding:
    """Look at how many cores may be used, and whether a quota cuts that down."""
    found = f"{cores()} of {os.cpu_count()}"
    if quota is None or quota >= cores():
        return fine("cores", found)
    return Finding(
        "cores",
        "slow",
        f"{found}, with a quota of {quota:g}",
        f"Programs start {cores()} threads, and the container halts them all when its share of "
        f"a period is used up: answers then wait for tens of milliseconds.",
        f"Set OMP_NUM_THREADS={max(1, int(quota))}, or raise the container's quota.",
    )


def usable_cores(quota: float | None) -> int:
    """Give how many threads can really run at a time."""
    return cores() if quota is None else max(1, min(cores(), round(quota)))


def check_variables(environment: Mapping[str, str], usable: int) -> Finding:
    """Look at the variables that say how many threads to start."""
    told = {name: environment[name] for name in VARIABLES if environment.get(name)}
    found = ", ".join(f"{name}={value}" for name, value in told.items()) or "none set"
    wrong = [name for name, value in told.items() if not value.split(",")[0].isdecimal()]
    large = [
        name
        for name, value in told.items()
        if name not in wrong and int(value.split(",")[0]) > usable
    ]
    if not wrong and not large:
        return fine("thread variables", found)
    why = _WAITING if large else "A value that is no number is ignored, or refused."
    fix = f"Set {', '.join([*wrong, *large])} to {usable} or less, or unset them."
    return Finding("thread variables", "slow", found, why, fix)


def check_torch_threads(usable: int) -> Finding:
    """Look at how many threads torch would start."""
    import torch

    threads = torch.get_num_threads()
    if threads <= usable:
        return fine("torch threads", f"{threads} for {usable} cores")
    fix = f"Set OMP_NUM_THREADS={usable}, or call torch.set_num_threads({usable})."
    return Finding("torch threads", "slow", f"{threads} for {usable} cores", _WAITING, fix)


def check_openmp() -> Finding:
    """Look at which runtimes of OpenMP are loaded: faiss and torch each bring one."""
    for name in ("torch", "faiss"):
        try:
            __import__(name)
        except ImportError:
            continue
    try:
        mapped = Path("/proc/self/maps").read_text()
    except OSError:
        return fine("OpenMP", f"not looked at on {sys.platform}")
    return finding_for_runtimes(openmp_in(mapped))


def openmp_in(maps: str) -> list[str]:
    """Give the runtimes of OpenMP among mapped files, each once."""
    paths = re.findall(r"\S*/lib(?:gomp|iomp5|omp)[-.\w]*$", maps, re.MULTILINE)
    return sorted(set(paths))


def finding_for_runtimes(paths: list[str]) -> Finding:
    """Say whether the runtimes that are loaded go together."""
    kinds = {"gomp" if "libgomp" in path else "iomp" for path in paths}
    found = ", ".join(Path(path).parent.name + "/" + Path(path).name for path in paths) or "none"
    if len(kinds) < 2:
        return fine("OpenMP", found)
    return Finding(
        "OpenMP",
        "slow",
        found,
        "Two kinds of OpenMP share the cores: threads of one spin while the other works.",
        "Set OMP_NUM_THREADS=1 where decisions are made, or install torch and faiss from one "
        "place.",
    )
