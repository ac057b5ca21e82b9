"""Clean environments: what is installed into them, how large it is, and how fast it imports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from scripts.release.building import ReleaseError

_TIMES = 7
_SIZES = """
import json, os
from importlib import metadata
sizes = {}
for one in metadata.distributions():
    paths = [one.locate_file(path) for path in one.files or ()]
    there = [path for path in paths if os.path.exists(path)]
    sizes[one.metadata["Name"].lower()] = sum(map(os.path.getsize, there))
print(json.dumps(sizes))
"""
_IMPORT = """
from time import perf_counter
started = perf_counter()
{code}
print(perf_counter() - started)
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment that knows nothing of this checkout but the versions to install."""

    folder: Path
    constraints: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(
        self, *command: str, timeout_seconds: float = 300.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of this environment, away from the checkout."""
        program = str(self.folder / "bin" / command[0])
        hidden = ("PYTHONPATH", "NUMBA_CACHE_DIR")
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        names = ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")
        kept |= dict.fromkeys(names, str(self.constraints))
        return subprocess.run(
            [program, *command[1:]],
            cwd=self.folder,
            env=kept,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
        )

    def told(self, *command: str, timeout_seconds: float = 300.0) -> str:
        """Run a program, and give what it printed; raise where it fails."""
        done = self.run(*command, timeout_seconds=timeout_seconds)
        if done.returncode:
            shown = " ".join(command)[:200]
            raise ReleaseError(f"{shown}: exit status {done.returncode}\n{done.stderr[-3000:]}")
        return done.stdout


def make_environment(
    folder: Path, archive: Path, constraints: Path, extra: str = ""
) -> Environment:
    """Make an environment with fastbandit from an archive, and an extra of it."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    made = Environment(folder, constraints)
    wanted = f"{archive}[{extra}]" if extra else str(archive)
    made.told("python", "-m", "pip", "install", "-q", wanted, timeout_seconds=1200)
    return made


def downloaded_bytes(environment: Environment, archive: Path) -> dict[str, int]:
    """Give the bytes that installing an archive downloads, by file."""
    folder = environment.folder / "downloaded"
    command = ["python", "-m", "pip", "download", "-q", "-d", str(folder), str(archive)]
    environment.told(*command, timeout_seconds=600)
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    shutil.rmtree(folder)
    return sizes


def unpacked_bytes(environment: Environment) -> dict[str, int]:
    """Give the bytes that each package takes on disk, but for pip itself."""
    sizes: dict[str, int] = json.loads(environment.told("python", "-c", _SIZES))
    return {name: size for name, size in sizes.items() if name not in ("pip", "setuptools")}


def import_seconds(environment: Environment, code: str) -> float:
    """Time code in fresh processes: the median."""
    program = _IMPORT.format(code=code)
    return median(float(environment.told("python", "-c", program)) for _ in range(_TIMES))
