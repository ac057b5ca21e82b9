"""A load may have a core that the service does not use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lab.faults.pinning import cores_apart, on_cores

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system binds no process to a core"
)


def test_the_last_core_is_for_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3, 5})
    assert cores_apart() == ({0, 3}, {5})
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3})
    assert cores_apart() is None


def test_what_is_started_meanwhile_runs_on_these_cores_alone() -> None:
    before = os.sched_getaffinity(0)
    own = {min(before)}
    with on_cores(own):
        ask = "import os; print(os.sched_getaffinity(0))"
        said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
        with on_cores(None):
            assert os.sched_getaffinity(0) == own
    assert said.stdout.strip() == str(own)
    assert os.sched_getaffinity(0) == before
