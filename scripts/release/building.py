"""Build the wheel and the source archive, and check what is in them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from scripts.release.imports import PACKAGE, ROOT

LARGEST = 500_000
"""Bytes of a file: what is larger is data."""
_FOLDERS_OF_SOURCE = ("lab/", "tests/", "docs/", "scripts/", "clients/")
_NEVER = (
    *("results/", ".git/", ".venv/", "dist/", "node_modules/"),
    *("__pycache__", ".nbi", ".nbc", ".pyc", ".db"),
)
_RECORDED = "tests/golden/files/"  # what an earlier version saved, for the tests to read


class ReleaseError(Exception):
    """Something that must not be released."""


def build(folder: Path, constraints: Path) -> tuple[Path, Path]:
    """Build into a folder, with build tools of the versions that constraints name."""
    for old in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
        old.unlink()
    held = {"PIP_CONSTRAINT": str(constraints), "PIP_BUILD_CONSTRAINT": str(constraints)}
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, env={**os.environ, **held}, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"The build failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def sources() -> set[str]:
    """Give every file that the package consists of, by its path."""
    made = ("__pycache__", ".nbi", ".nbc", ".pyc")
    paths = (path for path in PACKAGE.rglob("*") if path.is_file())
    named = (path.relative_to(ROOT).as_posix() for path in paths)
    return {name for name in named if not any(part in name for part in made)}


def files_in(archive: Path) -> dict[str, int]:
    """Give the files in a wheel, or in a source archive below its one folder, and their sizes."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {one.filename: one.file_size for one in wheel.infolist()}
    with tarfile.open(archive) as source:
        return {one.name.partition("/")[2]: one.size for one in source.getmembers() if one.isfile()}


def problems_of_wheel(files: dict[str, int], wanted: set[str]) -> list[str]:
    """Say what a wheel lacks, and what does not belong into it."""
    packed = {name for name in files if name.startswith("fastbandit/")}
    others = {name for name in files if ".dist-info/" not in name} - packed
    told = [f"the wheel lacks {name}" for name in sorted(wanted - packed)]
    told += [f"the wheel has {name}" for name in sorted((packed - wanted) | others)]
    for name in ("fastbandit/py.typed",):
        told += [] if name in packed else [f"the wheel lacks {name}"]
    if not any(name.endswith("licenses/LICENSE") for name in files):
        told.append("the wheel lacks LICENSE")
    return told + _problems_of_both(files)


def problems_of_source(files: dict[str, int], wanted: set[str]) -> list[str]:
    """Say what a source archive lacks, and what does not belong into it."""
    told = [f"the source archive lacks {name}" for name in sorted(wanted - set(files))]
    for name in ("pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff"):
        told += [] if name in files else [f"the source archive lacks {name}"]
    for start in _FOLDERS_OF_SOURCE:
        if not any(name.startswith(start) for name in files):
            told.append(f"the source archive lacks {start}")
    return told + _problems_of_both(files)


def _problems_of_both(files: dict[str, int]) -> list[str]:
    named = [name for name in files if not name.startswith(_RECORDED)]
    never = [name for name in named if any(part in f"/{name}" for part in _NEVER)]
    large = [name for name, size in files.items() if size > LARGEST]
    return [f"{name} does not belong into a release" for name in sorted(never)] + [
        f"{name} has {files[name]:,} bytes, more than {LARGEST:,}" for name in sorted(large)
    ]
