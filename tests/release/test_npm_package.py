"""The client in TypeScript is packed whole, and the package works where nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.release import npm_package
from scripts.release.__main__ import Release, lines_of, try_npm
from scripts.release.building import ReleaseError

NEEDED = {"package.json", "LICENSE", "dist/index.js", "dist/index.d.ts"}


def test_a_whole_package_has_no_problems() -> None:
    assert npm_package.problems_of_package(NEEDED, NEEDED) == []


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_a_package_that_lacks_a_file_is_found(name: str) -> None:
    found = npm_package.problems_of_package(NEEDED - {name}, NEEDED)

    assert found == [f"the npm package lacks {name}"]


@pytest.mark.parametrize("name", ["src/index.ts", "tests/client.test.mjs", ".npmrc"])
def test_a_package_with_more_than_what_was_compiled_is_found(name: str) -> None:
    found = npm_package.problems_of_package(NEEDED | {name}, NEEDED)

    assert found == [f"the npm package has {name}"]


def test_every_source_is_wanted_compiled_and_described() -> None:
    wanted = npm_package.wanted()

    assert {"LICENSE", "package.json", "dist/api.d.ts", "dist/spool.js"} <= wanted


def test_where_node_is_missing_it_is_said_and_nothing_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    release = Release(told={"files": {}})

    try_npm(release, tmp_path)

    said = "NOT PACKED, the client in TypeScript: node and npm missing: install Node 18 or newer"
    assert said in list(lines_of(release))
    assert release.told["files"] == {}


def test_what_cannot_be_packed_must_not_be_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ReleaseError("npm ci: exit status 1")

    monkeypatch.setattr(npm_package, "why_not", lambda: "")
    monkeypatch.setattr(npm_package, "release", fail)
    release = Release(told={"files": {}})

    try_npm(release, tmp_path)

    assert (release.problems, release.status) == (["npm ci: exit status 1"], 1)


@pytest.mark.slow
def test_the_package_is_installed_into_a_clean_folder_and_used(tmp_path: Path) -> None:
    if why := npm_package.why_not():
        pytest.skip(why)
    release = Release(told={"files": {}})
    (tmp_path / "fastbandit-0.0.1.tgz").touch()  # of an earlier release

    try_npm(release, tmp_path)

    assert release.problems == []
    (name,) = release.told["files"]
    assert name == f"fastbandit-{version()}.tgz"
    used = release.told["npm"]["used"]
    assert (used["arm"], used["flushed"]) == ("arm-1", {"sent": 1, "rejected": 0, "left": 0})
    assert [path.name for path in tmp_path.glob("*.tgz")] == [name]


def version() -> str:
    text = (npm_package.PACKAGE / "package.json").read_text(encoding="utf-8")
    return str(json.loads(text)["version"])
