"""What the metadata says that is needed, and whether a version fits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastbandit.cli.installed import fits

ROOT = Path(__file__).parent.parent


def doctor(*options: str, blocked: tuple[str, ...] = (), **variables: str) -> dict[str, Any]:
    """Run the doctor in a process of its own, in which some modules are not there."""
    code = (
        f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\n"
        f"from fastbandit.cli.main import main\nmain(['doctor', '--json', *{options!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["healthy"] == (done.returncode == 0)
    return {"states": {one["name"]: one for one in told["findings"]}, **told}


@pytest.mark.parametrize(
    ("version", "bounds", "is_fit"),
    [
        ("1.10", ">=1.9", True),
        ("1.9", ">=1.10", False),
        ("2", ">=2.0.0", True),
        ("0.60", ">=0.54,<0.60", False),
        ("0.59.9", ">=0.54,<0.60", True),
        ("2.13.0+cpu", "==2.13.0", True),
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, bounds: str, is_fit: bool) -> None:
    assert fits(version, bounds) == is_fit
