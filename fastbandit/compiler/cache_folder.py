"""Where compiled code is kept: a folder of the user's, by versions and sources.

Beside the package it would be lost with every upgrade, and could not be written where an
installation is read-only.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
_MARK = b"@compiled("


def cache_folder(
    environment: Mapping[str, str] | None = None, *, system: str | None = None
) -> Path | None:
    """Return the folder for what is compiled from these sources, by these versions.

    None where the user decided with `NUMBA_CACHE_DIR`. It may not exist yet. Code of another
    processor may lie in it, too: numba tells them apart.
    """
    environment = os.environ if environment is None else environment
    if environment.get("NUMBA_CACHE_DIR"):
        return None
    return _user_folder(environment, system or sys.platform) / key()


def key() -> str:
    """Return what compiled code depends on: versions, and the text of all that is compiled.

    numba looks at the time and size of a function's own file only: with the text of the files
    that it calls into, an upgrade never runs what was compiled from others.
    """
    import numba

    from fastbandit import __version__

    sources = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if _MARK in text:
            sources.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + text)
    python = f"{platform.python_implementation().lower()}{sys.version_info[0]}{sys.version_info[1]}"
    return f"{__version__}-numba{numba.__version__}-{python}-{sources.hexdigest()[:12]}"


def is_writable(folder: Path) -> bool:
    """Return whether files can be made in a folder, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _user_folder(environment: Mapping[str, str], system: str) -> Path:
    """Return the folder for caches, by the conventions of a system."""
    own, home = environment.get("FASTBANDIT_CACHE_DIR"), Path(environment.get("HOME") or "~")
    if own:
        return Path(own).expanduser()
    if system == "win32":
        local = environment.get("LOCALAPPDATA")
        return Path(local or Path("~/AppData/Local").expanduser()) / "fastbandit" / "Cache"
    if system == "darwin":
        return home.expanduser() / "Library" / "Caches" / "fastbandit"
    xdg = environment.get("XDG_CACHE_HOME", "")
    base = Path(xdg) if os.path.isabs(xdg) else home.expanduser() / ".cache"
    return base / "fastbandit"
