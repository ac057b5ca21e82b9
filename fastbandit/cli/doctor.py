"""The command `doctor`: what is wrong with this installation or a service's data; what to do."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any, Literal, TypeAlias

import click

import fastbandit
from fastbandit.cli.options import print_json, read_service, service_options
from fastbandit.cores import cores
from fastbandit.errors import FastbanditError
from fastbandit.settings.passwords import hide_password
from fastbandit.settings.service_files import find_config

State: TypeAlias = Literal["ok", "slow", "broken", "missing"]
"""Fine; works, but slower than it could; does not work; not there, and only some need it."""

_COLOURS = {"ok": "green", "slow": "yellow", "broken": "red", "missing": "bright_black"}
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre")
_FOR_DEVELOPERS = ("cluster-dev", "dev", "docs", "lab", "peers", "release")

Needs = dict[str, dict[str, str]]
"""By extra ("" for the base), the packages that it needs, within bounds like ">=1.2,<2"."""

_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?\s*(?P<bounds>[^;]*)"
    r"(?:;.*extra\s*==\s*['\"](?P<extra>[\w-]+)['\"])?"
)
_HOLDS = {">=": ge, "~=": ge, "<=": le, "==": eq, "!=": ne, ">": gt, "<": lt}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. What is fine needs no `why` and no `fix`."""

    name: str
    state: State
    found: str
    why: str = ""
    fix: str = ""


Check: TypeAlias = Callable[[], Finding | list[Finding]]


@click.command("doctor")
@service_options
@click.pass_context
def command(
    context: click.Context, path: Path | None, data_dir: Path | None, *, as_json: bool
) -> None:
    """Check this installation: versions, compiler and threads; and the data of a service.

    The data is looked at where --data-dir or the settings name it. Exits with 1 where something is
    broken, else with 0.
    """
    url = key_file = ""
    if find_config(path) is not None:
        config = read_service(path, data_dir)
        data_dir, url = Path(config.server.data_dir), config.log.url
        key_file = config.snapshots.signing_key_file
    findings = examine(data_dir, url, key_file)
    is_healthy = all(one.state != "broken" for one in findings)
    if as_json:
        head = {"version": fastbandit.__version__, "healthy": is_healthy}
        print_json({**head, "findings": [asdict(one) for one in findings]})
    else:
        print_findings(findings)
    context.exit(0 if is_healthy else 1)


def examine(data_dir: Path | None = None, log_url: str = "", key_file: str = "") -> list[Finding]:
    """Make all checks: those of data where a folder is named, of a log at its URL if it has one."""
    checks: dict[str, Check] = {
        "Python": lambda: Finding("Python", "ok", platform.python_version()),
        "fastbandit": check_fastbandit,
        "packages": lambda: check_packages(needs_in(metadata.requires("fastbandit") or [])),
        "numba": check_numba,
        "compiled code": check_cache,
        "threads": lambda: check_threads(threads_started(), quota_of()),
    }
    if data_dir is not None:
        checks["data folder"] = lambda: check_folder(data_dir)
        checks["file system"] = lambda: check_file_system(kind_of(data_dir))
        checks["log"] = lambda: (
            check_shared_log(log_url, data_dir) if log_url else check_log(data_dir)
        )
        checks["snapshots"] = lambda: check_snapshots(data_dir / "snapshots", key_file)
    return [one for name, check in checks.items() for one in made(name, check)]


def made(name: str, check: Check) -> list[Finding]:
    """Make a check; an error that it raises is what it found."""
    try:
        found = check()
    except FastbanditError as error:  # which says what to do
        found = Finding(name, "broken", str(error))
    except ModuleNotFoundError as error:
        found = Finding(name, "missing", f"not looked at: {error.name} is not installed")
    except Exception as error:
        why = "This check could not be made, so something is not as fastbandit expects."
        found = Finding(name, "broken", f"{type(error).__name__}: {error}", why, "Report this.")
    return [found] if isinstance(found, Finding) else found


def print_findings(findings: list[Finding]) -> None:
    """Print what was found; below what is not fine, why it matters and what to do."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    table.add_column("check", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("found")
    for one in findings:
        lines = [line for line in (one.found, one.why, one.fix) if line]
        table.add_row(one.name, Text(one.state, _COLOURS[one.state]), Text("\n".join(lines)))
    Console(highlight=False, markup=False).print(table)
    counts = {state: sum(one.state == state for one in findings) for state in _COLOURS}
    click.echo(", ".join(f"{count} {state}" for state, count in counts.items() if count))


# -- versions


def check_fastbandit() -> Finding:
    """Look at which fastbandit is imported, and whether that is the one that pip installed."""
    installed = metadata.version("fastbandit")
    found = f"{fastbandit.__version__} in {Path(fastbandit.__file__).parent}"
    if installed == fastbandit.__version__:
        return Finding("fastbandit", "ok", found)
    why = "Two versions are mixed: one hides the other."
    fix = "Run: pip install --force-reinstall --no-deps fastbandit"
    return Finding("fastbandit", "broken", f"{found}; pip knows of {installed}", why, fix)


def needs_in(lines: Iterable[str]) -> Needs:
    """Read requirements as metadata has them; what extras share was written out at the build."""
    needs: Needs = {}
    for one in map(_REQUIREMENT.match, lines):
        if one is not None:
            needs.setdefault(one["extra"] or "", {})[one["name"]] = one["bounds"].strip()
    return needs


def installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def fits(version: str, bounds: str) -> bool:
    """Return whether a version lies within bounds, by its numbers."""
    found = re.findall(r"(>=|<=|==|!=|~=|>|<)\s*([^,\s]+)", bounds)
    return all(_HOLDS[sign](_numbers(version), _numbers(bound)) for sign, bound in found)


def _numbers(version: str) -> list[int]:
    """Return the release numbers of a version: what follows them (such as +cpu) says little."""
    found = re.match(r"\d+(\.\d+)*?(?=(\.0+)*(?![.\d]))", version)  # 2.0.0 is 2
    return [int(part) for part in found[0].split(".")] if found else []


def check_packages(
    needs: Needs, version_of: Callable[[str], str | None] = installed_version
) -> list[Finding]:
    """Look at the packages of the base, and of each extra but those of developers."""
    shown = {extra: wanted for extra, wanted in needs.items() if extra not in _FOR_DEVELOPERS}
    return [_check_extra(extra, wanted, version_of) for extra, wanted in shown.items()]


def _check_extra(
    extra: str, wanted: Mapping[str, str], version_of: Callable[[str], str | None]
) -> Finding:
    name = f"extra {extra}" if extra else "base packages"
    there = {name: version for name in wanted if (version := version_of(name)) is not None}
    unfit = [
        f"{name} {version} (needs {wanted[name]})"
        for name, version in there.items()
        if not fits(version, wanted[name])
    ]
    absent = [name for name in wanted if name not in there]
    fix = f"Run: pip install -U 'fastbandit{f'[{extra}]' if extra else ''}'"
    if unfit:
        return Finding(name, "broken", ", ".join(unfit), "Other versions were tested.", fix)
    if not absent:
        found = ", ".join(f"{name} {version}" for name, version in there.items())
        return Finding(name, "ok", found)
    state: State = "missing" if extra else "broken"
    found = f"not installed: {', '.join(absent)}{f' (of {len(wanted)})' if there else ''}"
    return Finding(name, state, found, "Only those parts that need it do not work.", fix)


# -- the compiler


def check_numba() -> Finding:
    """Let numba compile something small."""
    import numba

    config: Any = numba.config
    if config.DISABLE_JIT:
        why = "Nothing is compiled: a decision takes a thousand times as long."
        found = f"{numba.__version__}, disabled"
        return Finding("numba", "slow", found, why, "Unset NUMBA_DISABLE_JIT.")
    compiled: Any = numba.njit(lambda: 1)
    compiled()
    return Finding("numba", "ok", f"{numba.__version__}, compiles")


def check_cache() -> Finding:
    """Look at the folder of compiled code: numba takes the first that it can write to."""
    try:
        from fastbandit.runtime import kernel
    except RuntimeError as error:  # there is none
        why = "Without a folder for compiled code, nothing can be imported."
        fix = "Set NUMBA_CACHE_DIR or FASTBANDIT_CACHE_DIR to a folder that this user may write to."
        return Finding("compiled code", "broken", str(error), why, fix)
    decide: Any = kernel.decide
    if not hasattr(decide, "stats"):
        return Finding("compiled code", "ok", "none, as numba is disabled")
    return Finding("compiled code", "ok", f"in {decide.stats.cache_path}, which is writable")


# -- threads


def threads_started() -> dict[str, int]:
    """Return how many threads numba, and torch where it is installed, would start."""
    import numba

    config: Any = numba.config
    threads = {"numba": int(config.NUMBA_NUM_THREADS)}
    if find_spec("torch") is not None:
        import torch

        threads["torch"] = torch.get_num_threads()
    return threads


def quota_of(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Return how many cores' time a container may use, or None where there is no limit."""
    for names in (["cpu.max"], ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]):
        with suppress(OSError, ValueError):
            limit, period = " ".join((root / name).read_text() for name in names).split()
            return None if limit == "max" or int(limit) <= 0 else int(limit) / int(period)
    return None


def check_threads(threads: Mapping[str, int], quota: float | None) -> Finding:
    """Compare threads with the cores that this process may use, and with a container's quota."""
    usable = cores() if quota is None else max(1, min(cores(), round(quota)))
    found = ", ".join(f"{name} {count}" for name, count in threads.items())
    found += f", on {cores()} of {os.cpu_count()} cores"
    found += "" if quota is None else f" with a quota of {quota:g}"
    if max(threads.values()) <= usable:
        return Finding("threads", "ok", found)
    why = "Threads beyond the cores wait for one another; a quota halts them all for a while."
    fix = f"Set OMP_NUM_THREADS={usable} and NUMBA_NUM_THREADS={usable}, or raise the quota."
    return Finding("threads", "slow", found, why, fix)


# -- the data of a service


def check_folder(folder: Path) -> Finding:
    """Look at whether files can be made in a data folder, or in the one that will hold it."""
    if not os.path.lexists(folder):  # nor where it may not be looked for
        above = next(one for one in folder.absolute().parents if os.path.lexists(one))
        fine = Finding("data folder", "ok", "none yet; a service makes it")
        return _unwritable("data folder", above) or fine
    if not folder.is_dir():
        why, fix = "Nothing can be stored.", "Name a folder: server.data_dir, or --data-dir."
        return Finding("data folder", "broken", f"{folder} is no folder", why, fix)
    fine = Finding("data folder", "ok", f"{folder} can be written to")
    return _unwritable("data folder", folder) or fine


def check_file_system(kind: str) -> Finding:
    """Say whether a log can live on a kind of file system."""
    if kind in _NETWORK or kind.startswith("fuse.sshfs"):
        why = "SQLite's write-ahead log needs shared memory and locks, which networks do not give."
        fix = "Keep the data folder on a disk of this machine."
        return Finding("file system", "broken", f"{kind}, a network's", why, fix)
    if kind in ("tmpfs", "ramfs"):
        why, fix = "What was acknowledged is gone at a stop.", "Keep the data folder on a disk."
        return Finding("file system", "broken", f"{kind}, in memory", why, fix)
    return Finding("file system", "ok", kind or "unknown on this system")


def kind_of(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Return the kind of file system that a folder lies on, "" where that is not known."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    whole, found = folder.resolve(), ("", "")
    for line in lines:
        _, mount, kind, *_ = line.split()
        mount = mount.replace("\\040", " ")
        if whole.is_relative_to(mount) and len(mount) >= len(found[0]):
            found = (mount, kind)
    return found[1]


def check_log(folder: Path) -> Finding:
    """Look at whether the log in a folder, or the copy of a shared one, can be read and written."""
    from fastbandit.storage.data_folder import LOG_FILE
    from fastbandit.storage.local_copy import COPY
    from fastbandit.storage.log_reader import one_moment_of
    from fastbandit.storage.log_schema import VERSION, version_of
    from fastbandit.storage.sqlite_log import check_sqlite

    check_sqlite()
    path, of, fix = folder / LOG_FILE, "", "Do as it says, or restore a backup."
    if not path.exists() and (folder / COPY / LOG_FILE).exists():
        path, of = folder / COPY / LOG_FILE, "the copy of a shared log: "
        fix = f"Remove the folder {path.parent}: it is copied anew."
    if not path.exists():
        return Finding("log", "ok", f"none yet; a new one gets version {VERSION}")
    try:
        with one_moment_of(path) as connection:
            found = f"{of}version {version_of(connection, path)}"
    except FastbanditError as error:
        return Finding("log", "broken", str(error), "It cannot be read.", fix)
    return _unwritable("log", path) or Finding("log", "ok", found)


def check_shared_log(url: str, folder: Path) -> Finding:
    """Look at whether the log that services share can be read."""
    from fastbandit.storage.postgres_schema import VERSION, NoLogError
    from fastbandit.storage.shared import open_log

    try:
        with closing(open_log(url, folder, is_reader=True)) as log:
            return Finding("log", "ok", f"{log.last:,} events in {hide_password(url)}")
    except NoLogError:
        found = f"none yet in {hide_password(url)}; a new one gets version {VERSION}"
        return Finding("log", "ok", found)


def check_snapshots(folder: Path, key_file: str = "") -> Finding:
    """Look at whether the current snapshot is whole, and the next can be written beside it."""
    from fastbandit.files.signing import read_keys
    from fastbandit.storage.snapshot_store import SnapshotStore
    from fastbandit.storage.snapshot_version import check_hashes

    store = SnapshotStore(folder, keys=read_keys(key_file))
    current = store.current(check_hashes)
    if current is None:
        return Finding("snapshots", "ok", "none yet")
    if current.fell_back:
        why = f"Version {current.version} stands in."
        fix = f"Run: fastbandit rollback {current.version} --data-dir {folder.parent}"
        return Finding("snapshots", "broken", current.fell_back, why, fix)
    found = f"version {current.version}, of {len(store.versions())}"
    return _unwritable("snapshots", folder) or Finding("snapshots", "ok", found)


def _unwritable(name: str, path: Path) -> Finding | None:
    """Return what to say of a file or folder that cannot be written to, None where it can."""
    if os.access(path, os.W_OK, effective_ids=True):
        return None
    why = "A decision is answered only after it was written down."
    fix = "Let the user of the service write to it, or name another folder."
    return Finding(name, "broken", f"{path} cannot be written to", why, fix)
