"""Checks of memory, open files, the clock and a GPU."""

from __future__ import annotations

import re
import resource
import time
from datetime import UTC, datetime
from pathlib import Path

import fastbandit
from fastbandit.doctor.finding import Finding, fine

_GIB = 2**30
_LITTLE_MEMORY = _GIB
_MUCH_SWAP = 0.1
_FEW_FILES = 4_096
_OLDEST_NOW = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
_DAY_SECONDS = 86_400


def check_memory() -> Finding:
    """Look at how much memory is left, to this container too, and whether any was swapped out."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return fine("memory", "not looked at on this system")
    told = {name: int(size) * 1024 for name, size in re.findall(r"^(\w+): +(\d+) kB", text, re.M)}
    return finding_for_memory(
        left=min(told["MemAvailable"], limit_left()),
        total=told["MemTotal"],
        swapped=told["SwapTotal"] - told["SwapFree"],
    )


def limit_left(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Give the bytes that a container may still take; without a limit, more than any has."""
    try:
        limit, used = ((root / f"memory.{name}").read_text().strip() for name in ("max", "current"))
    except OSError:
        return 2**63
    return 2**63 if limit == "max" else max(0, int(limit) - int(used))


def finding_for_memory(*, left: int, total: int, swapped: int) -> Finding:
    """Say whether memory is short, in bytes."""
    found = (
        f"{left / _GIB:.1f} of {total / _GIB:.1f} GiB left, {swapped / _GIB:.1f} GiB swapped out"
    )
    if swapped > _MUCH_SWAP * total:
        why = "Arms that were swapped out are read from disk, in the middle of a decision."
        return Finding("memory", "slow", found, why, "End other programs, or turn swap off.")
    if left < _LITTLE_MEMORY:
        why = "A million arms take about 0.2 GiB when they decide, and more when they learn."
        return Finding("memory", "slow", found, why, "End other programs, or raise the limit.")
    return fine("memory", found)


def check_open_files() -> Finding:
    """Look at how many files and connections a process may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return finding_for_open_files(soft, hard)


def finding_for_open_files(soft: int, hard: int) -> Finding:
    """Say whether a limit of open files is enough for a service."""
    if soft == resource.RLIM_INFINITY or soft >= _FEW_FILES:
        return fine("open files", "no limit" if soft == resource.RLIM_INFINITY else f"{soft:,}")
    return Finding(
        "open files",
        "slow",
        f"{soft:,}",
        "Each connection to a service is an open file: more are refused.",
        f"Run: ulimit -n {_FEW_FILES if hard < 0 else min(hard, 65_536)}",
    )


def check_clock() -> Finding:
    """Look at whether the clock can be right: after this release, and after its own files."""
    installed = Path(fastbandit.__file__).stat().st_mtime
    return finding_for_clock(time.time(), max(_OLDEST_NOW, installed - _DAY_SECONDS))


def finding_for_clock(now: float, oldest: float) -> Finding:
    """Say whether a time lies after the oldest that can be."""
    found = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if now >= oldest:
        return fine("clock", found)
    return Finding(
        "clock",
        "broken",
        f"{found}, before {datetime.fromtimestamp(oldest, UTC):%Y-%m-%d}",
        "Rewards are waited for by the clock, and keys and certificates expire by it.",
        "Set the clock, and keep it by NTP.",
    )


def check_gpu() -> Finding:
    """Look at whether torch has a GPU, and what walks need there."""
    import torch

    if not torch.cuda.is_available():
        return fine("GPU", "none that torch can use; decisions are made on the processor")
    name = torch.cuda.get_device_name(0)
    found = f"{torch.cuda.device_count()} x {name}, torch for CUDA {torch.version.cuda}"
    try:
        import triton
    except ImportError:
        why = "Searches on a GPU walk by a kernel of Triton; without, in many small steps."
        return Finding("GPU", "slow", f"{found}, no Triton", why, "Run: pip install triton")
    return fine("GPU", f"{found}, Triton {triton.__version__}")
