"""After a flipped bit an older version answers, and says why; whatever else is counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from lab.faults import flips as campaign
from lab.faults.flips import FlipReport, flip_bits, flips_command

WHOLE = {"older": 2, "seconds": [1.0, 2.0]}


def test_one_bit_of_one_file_is_flipped(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(bytes(100))

    name, bit = campaign._flip(tmp_path, np.random.default_rng(0))

    contents = {one: (tmp_path / one).read_bytes() for one in ("a", "b")}
    assert sum(byte.bit_count() for content in contents.values() for byte in content) == 1
    assert contents[name][bit // 8] == 1 << (bit % 8)


def test_the_pointer_is_removed_or_a_bit_of_it_flipped(tmp_path: Path) -> None:
    found = set()
    for seed in range(8):
        (tmp_path / "pointer").write_bytes(bytes(9))
        what = campaign._lose(tmp_path / "pointer", np.random.default_rng(seed))
        is_there = (tmp_path / "pointer").exists()
        assert is_there == what.startswith("bit ")
        found.add(is_there)

    assert found == {True, False}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 0),
        ({"older": 1}, 1),
        ({"older": 1, "pointers": 1}, 0),
        ({"unsaid": 1}, 1),
        ({"lost": 1}, 1),
        ({"reused": 1}, 1),
        ({"seconds": [1.0, 5.5]}, 1),
    ],
)
def test_the_bars_are_all_of_them(
    change: dict[str, object], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = FlipReport(2, 0, 100, **{**WHOLE, **change})  # type: ignore[arg-type]
    monkeypatch.setattr(campaign, "flip_bits", lambda *args, **terms: report)

    ended = CliRunner().invoke(flips_command, ["--flips", "2", "--json"])

    assert ended.exit_code == status
    assert json.loads(ended.output)["flips"] == 2


@pytest.mark.slow
def test_an_older_version_stands_in_for_a_flipped_one_and_the_newest_for_no_pointer() -> None:
    report = flip_bits(2, seed=3, arms=100)

    assert report.is_whole, report.wrong
    assert (report.older, report.pointers, len(report.seconds)) == (1, 1, 2)
