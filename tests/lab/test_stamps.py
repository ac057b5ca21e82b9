"""Generated tables say how they came about, and none is older than the release before."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from fastbandit import __version__
from lab.published.command import ROOT
from lab.published.pages import pages_of
from lab.stamps import (
    Stamp,
    command_line,
    commits_since,
    outdated,
    package_trees,
    releases_in,
    short,
    stamp_now,
    stamp_of,
    stamps_in,
)

PAGES = pages_of(ROOT)
WRITTEN = re.compile(
    r"<!-- (?!table (?:from|of) |end of )(?P<mark>[^\n]+?) -->\n(?P<block>.*?)<!-- end of ",
    re.DOTALL,
)
"""A block that a command writes; quoted tables have their stamp where they come from."""


def blocks() -> list[tuple[str, str]]:
    found = [
        (f"{page}: {one['mark']}", one["block"])
        for page, text in PAGES.items()
        for one in WRITTEN.finditer(text)
    ]
    return [*found, ("docs/results.md", PAGES["docs/results.md"])]


def test_a_stamp_is_read_as_it_was_written() -> None:
    results = [{"version": "0.1.0", "commit": "b" * 40}, {"version": "0.1.0", "commit": "a" * 40}]
    stamp = stamp_of("python -m lab report", results)

    assert stamps_in(f"above\n{stamp}\nbelow") == [stamp]
    assert stamp.commits == ("aaaaaaaaaa", "bbbbbbbbbb")


def test_a_result_without_a_commit_is_said_to_have_none() -> None:
    assert stamp_of("x", [{}]) == Stamp("x", ("not recorded",), ("not recorded",))
    assert short("0123456789abc-dirty") == "0123456789-dirty"


def test_commits_that_leave_the_package_as_it_was_are_of_one_tree(tmp_path: Path) -> None:
    def commit(name: str, text: str) -> str:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        for words in (("add", "."), (*who, "commit", "-qm", text)):
            subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
        command = ["git", "-C", str(tmp_path), "rev-parse", "HEAD"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    first = commit("fastbandit/a.py", "1")
    second = commit("docs/page.md", "2")
    third = commit("fastbandit/a.py", "3")

    assert len(package_trees([first, second], tmp_path)) == 1
    assert len(package_trees([first, third], tmp_path)) == 2
    assert len(package_trees([first, f"{first}-dirty", None], tmp_path)) == 3


def test_outside_of_a_command_the_stamp_names_the_plain_one() -> None:
    stamp = stamp_now(command_line("bench select"))

    assert (stamp.command, stamp.versions) == ("python -m lab bench select", (__version__,))


def test_a_stamp_without_a_commit_has_no_age() -> None:
    assert commits_since(Stamp("x", ("0.1.0",), ("not recorded",)), ROOT) is None
    assert commits_since(Stamp("x", ("0.1.0",), ("0" * 10,)), ROOT) is None


def test_releases_come_newest_first_led_by_the_present_version() -> None:
    text = "# Changelog\n\n## Unreleased\n\n## 0.3.0\n\n## 0.2.0, 2026-01-01\n"

    assert releases_in(text, now="0.4.0") == ["0.4.0", "0.3.0", "0.2.0"]
    assert releases_in(text, now="0.3.0") == ["0.3.0", "0.2.0"]


@pytest.mark.parametrize(
    ("version", "is_old"), [("0.4.0", False), ("0.3.0", False), ("0.2.0", True), ("9.9.9", True)]
)
def test_figures_may_be_one_release_old_and_no_more(version: str, is_old: bool) -> None:
    stamp = Stamp("python -m lab report", (version,), ("0123456789",))

    assert bool(outdated(stamp, ["0.4.0", "0.3.0", "0.2.0"])) is is_old


@pytest.mark.parametrize(
    ("where", "block"), blocks(), ids=lambda text: text.partition("\n")[0][:60]
)
def test_every_generated_table_says_its_command_and_code(where: str, block: str) -> None:
    assert stamps_in(block), f"{where} has no stamp. Write it with its command, or stamp it."


@pytest.mark.parametrize("page", PAGES)
def test_no_page_shows_figures_that_are_older_than_the_release_before(page: str) -> None:
    releases = releases_in((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))

    for stamp in stamps_in(PAGES[page]):
        assert not outdated(stamp, releases), f"Run `{stamp.command}` again, and renew {page}."
