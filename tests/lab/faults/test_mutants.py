"""Changed folders are refused by name or decide; a crash, a hang or another error is counted."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit.files.manifest import read_manifest, write_arrays
from lab.faults import mutants as campaign
from lab.faults.mutants import MutantReport, mutants_command, mutate, throw_mutants


@pytest.fixture
def original(tmp_path: Path) -> Path:
    arrays = {"model.a": np.zeros((4, 3), np.float32), "arms.b": np.arange(5), "c": np.ones(2)}
    notes = {"rows": 3, "words": {"kind": "x", "sizes": [1, 2]}}
    write_arrays(tmp_path / "original", arrays, notes, kind="frozen bandit", format=1)
    return tmp_path / "original"


def test_a_mutant_differs_and_its_hashes_hold(original: Path, tmp_path: Path) -> None:
    seen = set()
    for seed in range(40):
        folder = tmp_path / str(seed)
        folder.mkdir()
        seen.add(mutate(original, folder, np.random.default_rng(seed)).split(" ")[0])
        manifest = json.loads((folder / "manifest.json").read_text())
        if (manifest.get("format"), manifest.get("kind")) == (1, "frozen bandit"):
            read_manifest(folder / "manifest.json", kind="frozen bandit", format=1)
    assert len(seen) > 5


def test_the_same_seed_makes_the_same_mutant(original: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    done = [mutate(original, tmp_path / n, np.random.default_rng(3)) for n in ("one", "two")]

    assert done[0] == done[1]
    one, two = (tmp_path / n / "manifest.json" for n in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("fault", ["crashes", "hangs", "untyped"])
def test_what_is_no_error_of_ours_is_a_miss(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    report = MutantReport(3, 0, refused=2, **{fault: 1})
    monkeypatch.setattr(campaign, "throw_mutants", lambda *args, **terms: report)

    ended = CliRunner().invoke(mutants_command, ["--mutants", "3", "--json"])

    assert ended.exit_code == 1
    assert json.loads(ended.output)[fault] == 1


@pytest.mark.slow
def test_no_mutant_ends_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ("frozen generator", "frozen effects", "effects")
    monkeypatch.setattr(campaign, "ORIGINALS", kinds)
    report = throw_mutants(60, seed=5)

    assert report.is_whole, report.wrong
    assert report.refused > 20
    assert report.refused + report.typed + report.decided == 60


def _ends(pipe: Any, home: Path, names: tuple[str, ...]) -> None:
    """Stand in for a child: one seed ends it, another makes it wait."""
    pipe.send("")
    while True:
        _, (_, number) = pipe.recv()
        if number == 0:
            os.abort()
        time.sleep(60.0 if number == 1 else 0.0)
        pipe.send(("refused", ""))


def test_a_child_that_ends_or_waits_is_counted_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "_serve", _ends)
    monkeypatch.setattr(campaign, "_SECONDS", 1.0)
    child = campaign._Child(tmp_path, ())
    try:
        assert child.try_one("x", (0, 0))[0] == "crashes"
        assert child.try_one("x", (0, 1))[0] == "hangs"
        assert child.try_one("x", (0, 2)) == ("refused", "")
    finally:
        child.close()
