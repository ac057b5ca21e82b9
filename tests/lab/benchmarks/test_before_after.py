"""Two trees decide in alternation with one frozen folder."""

from __future__ import annotations

import subprocess

import pytest

from fastbandit.errors import SettingError
from lab.benchmarks.before_after import ROOT, Row, checked_out, compare

IN_GIT = subprocess.run(
    ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, check=False
)
pytestmark = pytest.mark.skipif(IN_GIT.returncode != 0, reason="this is no checkout of git")


@pytest.mark.slow
def test_a_tree_beside_itself_chooses_the_same_arms() -> None:
    with checked_out("HEAD") as tree:
        found = compare(tree, 200, repeats=2)

    assert found.is_same
    assert found.before_us > 0
    assert found.ratio > 0


def test_a_commit_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingError, match="'nobody'"), checked_out("nobody"):
        pass


def test_other_arms_are_shown() -> None:
    assert Row(10, 20.0, 10.0, 2.0, False).cells() == ("10", "20.0", "10.0", "2.000", "NO")
