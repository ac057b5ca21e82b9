"""Version, changelog and citation say the same, in the form that others read."""

from __future__ import annotations

import json
import re
from datetime import date
from itertools import pairwise

import pytest
import yaml

import fastbandit
from scripts.release.imports import ROOT, extras, project

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
HEADING = re.compile(r"(\d+)\.(\d+)\.(\d+) \((\d{4}-\d{2}-\d{2})\)")


def problems_of(changelog: str) -> list[str]:
    """Say what is wrong with the headings of a changelog."""
    headings = re.findall(r"^## (.*)$", changelog, re.MULTILINE)
    told = [] if headings[:1] == ["Unreleased"] else ["the first section needs to be Unreleased"]
    releases = [(name, HEADING.fullmatch(name)) for name in headings[1:]]
    told += [f"{name!r} needs to be like 1.2.3 (2026-01-31)" for name, read in releases if not read]
    read = [(tuple(map(int, one.groups()[:3])), one[4]) for _, one in releases if one]
    for (newer, later), (older, earlier) in pairwise(read):
        if not (newer > older and date.fromisoformat(later) >= date.fromisoformat(earlier)):
            told.append(f"{newer} of {later} needs to come after {older} of {earlier}")
    return told


def test_the_version_is_the_same_everywhere() -> None:
    assert fastbandit.__version__ == project()["version"] == CITATION["version"]


def test_the_client_in_typescript_has_the_same_version_and_licence() -> None:
    package = ROOT / "clients" / "typescript"
    manifest = json.loads((package / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((package / "package-lock.json").read_text(encoding="utf-8"))

    assert manifest["version"] == lock["version"] == lock["packages"][""]["version"]
    assert (manifest["version"], manifest["license"]) == (
        project()["version"],
        project()["license"],
    )


def test_the_changelog_is_in_order() -> None:
    assert problems_of(CHANGELOG) == []


@pytest.mark.parametrize(
    "headings",
    [
        "## 0.2.0 (2026-01-31)\n",
        "## Unreleased\n## 0.2 (2026-01-31)\n",
        "## Unreleased\n## 0.2.0\n",
        "## Unreleased\n## 0.1.0 (2026-01-31)\n## 0.2.0 (2026-01-30)\n",
        "## Unreleased\n## 0.2.0 (2026-01-29)\n## 0.1.0 (2026-01-30)\n",
    ],
)
def test_a_changelog_out_of_order_is_found(headings: str) -> None:
    assert problems_of(headings) != []


def test_every_change_is_one_line_of_a_list() -> None:
    body = CHANGELOG.partition("## Unreleased\n")[2]

    lines = [line for line in body.splitlines() if line and not line.startswith("## ")]
    assert all(line.startswith(("- ", "  ")) for line in lines)


def test_the_citation_has_what_its_schema_requires() -> None:
    assert {"cff-version", "message", "title", "authors"} <= CITATION.keys()
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["type"] == "software"
    assert CITATION["license"] == project()["license"]
    assert [author["name"] for author in CITATION["authors"]] == ["The fastbandit authors"]


def test_the_paper_is_cited_with_what_the_schema_requires() -> None:
    (paper,) = CITATION["references"]

    assert paper.keys() >= {"type", "title", "authors"}
    assert "nonlinear contextual bandit" in paper["title"]
    assert [author["family-names"] for author in paper["authors"]] == ["Tsai", "Lin"]


def test_a_requirement_says_the_oldest_version() -> None:
    lines = [line for extra in extras().values() for line in extra]

    assert [line for line in lines if ">=" not in line and "fastbandit[" not in line] == []
