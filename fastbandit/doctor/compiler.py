"""Checks of numba: whether it compiles, for which processor, and whether it keeps what it made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastbandit.doctor.finding import Finding, fine

_SEEN = ("avx2", "avx512f", "neon", "asimd", "sve")
_COMPILES = "The first decision of a process waits for the compiler, about half a minute."


def check_numba(environment: Mapping[str, str]) -> Finding:
    """Look at whether numba compiles at all, and how it would spread work."""
    import numba

    config: Any = numba.config
    found = f"{numba.__version__}, threading layer {config.THREADING_LAYER}, not used"
    if not is_compiling(environment):
        why = "Nothing is compiled: a decision takes a thousand times as long."
        return Finding("numba", "slow", f"{found}, disabled", why, "Unset NUMBA_DISABLE_JIT.")
    return fine("numba", found)


def is_compiling(environment: Mapping[str, str]) -> bool:
    """Tell whether numba was not told to leave everything to Python."""
    return environment.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def check_processor() -> Finding:
    """Look at whether numba compiles for the wide instructions that the processor has."""
    import numba
    from llvmlite import binding

    config: Any = numba.config
    features = binding.get_host_cpu_features()
    seen = {name for name in _SEEN if features.get(name)}
    told = config.CPU_FEATURES
    if told is not None:
        seen &= {name[1:] for name in told.split(",") if name.startswith("+")}
    return finding_for_features(_of_processor(), seen, config.CPU_NAME)


def finding_for_features(has: set[str], seen: set[str], cpu: str | None) -> Finding:
    """Compare what a processor has with what numba sees."""
    found = f"has {', '.join(sorted(has)) or 'no wide instructions'}"
    if cpu is not None and cpu != "host":
        found += f"; NUMBA_CPU_NAME={cpu}"
    hidden = has - seen
    if hidden:
        return Finding(
            "processor",
            "slow",
            f"{found}; numba does not see {', '.join(sorted(hidden))}",
            "Compiled code takes fewer numbers at a time than it could.",
            "Unset NUMBA_CPU_NAME and NUMBA_CPU_FEATURES, or install a newer llvmlite.",
        )
    if not has:
        why = "Compiled code scores 8 or 16 arms at a time with AVX2 or AVX-512."
        return Finding("processor", "slow", found, why, "Use a processor that has AVX2.")
    return fine("processor", found)


def _of_processor() -> set[str]:
    """Give the wide instructions that the system says there are."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {"avx2"} if os.uname().machine == "x86_64" else {"neon"}
    flags = {
        word
        for line in text.splitlines()
        if line.partition(":")[0].strip() in ("flags", "Features")
        for word in line.partition(":")[2].split()
    }
    named = {"neon" if word == "asimd" else word for word in flags}
    return named & {*_SEEN} - {"asimd"}


# -- what was compiled


def check_cache() -> Finding:
    """Look at the folder in which compiled code is kept, and at whether it is there."""
    try:
        from fastbandit.runtime import kernel
    except RuntimeError as error:  # numba found no folder that it may write to
        return Finding(
            "compiled code",
            "broken",
            str(error),
            "Without a folder to keep compiled code in, nothing can be imported.",
            "Set NUMBA_CACHE_DIR to a folder that this user may write to.",
        )
    folder = cache_folder()
    is_warm = is_kept(folder, Path(kernel.__file__))
    return finding_for_cache(folder, is_warm=is_warm, is_writable=os.access(folder, os.W_OK))


def finding_for_cache(folder: Path, *, is_warm: bool, is_writable: bool) -> Finding:
    """Say what a cache of compiled code is worth."""
    where = f"{folder}{'' if is_writable else ', not writable'}"
    if is_warm:
        return fine("compiled code", f"kept in {where}")
    if is_writable or not folder.exists():
        fix = "Run: fastbandit doctor --warm"
        return Finding("compiled code", "slow", f"none yet in {where}", _COMPILES, fix)
    return Finding(
        "compiled code",
        "slow",
        f"none in {where}",
        f"{_COMPILES} It cannot be kept, so each process waits.",
        "Set NUMBA_CACHE_DIR to a folder that this user may write to.",
    )


def cache_folder() -> Path:
    """Give the folder in which numba keeps the compiled decision."""
    from fastbandit.runtime import kernel

    decide: Any = kernel.decide
    return Path(decide.stats.cache_path)


def is_kept(folder: Path, source: Path) -> bool:
    """Tell whether a folder has the compiled decision, made after its source was installed."""
    made = [path.stat().st_mtime for path in folder.glob(f"{source.stem}.decide-*.nbi")]
    return bool(made) and max(made) >= source.stat().st_mtime


def is_warm() -> bool:
    """Tell whether decisions need not be compiled first."""
    from fastbandit.runtime import kernel

    return is_kept(cache_folder(), Path(kernel.__file__))
