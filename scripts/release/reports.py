"""What a release says of its dependencies: a bill of materials, their licences, and an audit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scripts.release.building import ReleaseError
from scripts.release.environments import Environment

LICENCES = Path(__file__).with_name("licences.toml")


# -- the bill of materials


def write_bill(environment: Environment, path: Path, pyproject: Path) -> int:
    """Write what is installed as a CycloneDX file; give the number of components."""
    options = ["--output-reproducible", "--pyproject", str(pyproject), "--mc-type", "library"]
    _run("cyclonedx_py", "environment", *options, "-o", str(path), str(environment.python))
    bill: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return len(bill["components"])


# -- licences


@dataclass(frozen=True)
class Allowed:
    """Licences that may be installed, and packages that were looked at, by name: their licence."""

    licences: frozenset[str]
    packages: dict[str, str]


def read_allowed(path: Path = LICENCES) -> Allowed:
    """Read the licences that may be installed."""
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    return Allowed(frozenset(told["allowed"]), told["packages"])


def write_licences(environment: Environment, path: Path) -> list[dict[str, str]]:
    """Write the licence of each package that is installed; give them."""
    command = ["--python", str(environment.python), "--format", "json", "--with-urls"]
    rows: list[dict[str, str]] = json.loads(_run("piplicenses", *command))
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return rows


def problems_of_licences(rows: list[dict[str, str]], eligible: Allowed) -> list[str]:
    """Say which packages have a licence that is not allowed."""
    return [
        f"{row['Name']} {row['Version']} is under {row['License']!r}: look at it, and allow it in "
        f"{LICENCES.name} or drop it"
        for row in rows
        if not _is_allowed(row, eligible)
    ]


def _is_allowed(row: dict[str, str], eligible: Allowed) -> bool:
    if eligible.packages.get(row["Name"].lower()) == row["License"]:
        return True
    return all(_is_known(part.strip(), eligible.licences) for part in row["License"].split(";"))


def _is_known(licence: str, eligible: frozenset[str]) -> bool:
    """Tell whether a licence is allowed; AND asks for all, OR leaves the choice.

    Brackets are read as if AND came last, which never allows more than they do.
    """
    if licence in eligible:
        return True
    needed = re.split(r"\s+AND\s+", licence.replace("(", "").replace(")", ""))
    return all(not eligible.isdisjoint(re.split(r"\s+OR\s+", part)) for part in needed)


# -- the audit


@dataclass(frozen=True)
class Audit:
    """What is known of weaknesses: nothing at all where nobody could be asked."""

    state: Literal["clean", "vulnerable", "could not be asked"]
    asked: int
    unasked: int
    found: tuple[str, ...] = ()
    why: str = ""


def audit(environment: Environment, path: Path) -> Audit:
    """Ask for known weaknesses of what is installed, and write the answer."""
    (site,) = environment.folder.glob("lib/python*/site-packages")
    command = ["--path", str(site), "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", *command], capture_output=True, text=True, timeout=600
    )
    made = audit_of(done.stdout, done.stderr)
    path.write_text(done.stdout if made.asked or made.unasked else "{}\n", encoding="utf-8")
    return made


def audit_of(printed: str, complained: str) -> Audit:
    """Read an audit; packages that were skipped were not asked about, whatever the exit status."""
    try:
        rows: list[dict[str, Any]] = json.loads(printed)["dependencies"]
    except (ValueError, KeyError, TypeError):
        lines = complained.strip().splitlines() or ["no answer"]
        return Audit("could not be asked", 0, 0, why=lines[-1])
    ours = [row for row in rows if row["name"] not in ("fastbandit", "pip", "setuptools")]
    asked = [row for row in ours if "skip_reason" not in row]
    skipped = [row["skip_reason"] for row in ours if "skip_reason" in row]
    found = tuple(
        f"{row['name']} {row['version']}: {one['id']}" for row in asked for one in row["vulns"]
    )
    if found:
        return Audit("vulnerable", len(asked), len(skipped), found)
    if skipped or not asked:
        why = skipped[0] if skipped else "nothing was listed"
        return Audit("could not be asked", len(asked), len(skipped), why=why)
    return Audit("clean", len(asked), 0)


def _run(module: str, *options: str) -> str:
    command = [sys.executable, "-m", module, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise ReleaseError(f"{module} failed: {done.stderr[-2000:]}")
    return done.stdout
