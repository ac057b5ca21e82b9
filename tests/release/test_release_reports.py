"""What is built is checked, licences are allowed by name, and an audit never passes unasked."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from scripts.release.__main__ import UNASKED, Release, problems_of
from scripts.release.building import problems_of_source, problems_of_wheel, sources
from scripts.release.imports import ROOT
from scripts.release.reports import Allowed, audit_of, problems_of_licences, read_allowed

WANTED = {"fastbandit/__init__.py", "fastbandit/py.typed"}
WHEEL = {**dict.fromkeys(WANTED, 10), "fastbandit-1.dist-info/licenses/LICENSE": 10}
SOURCE = {
    **dict.fromkeys(WANTED, 10),
    **dict.fromkeys(("pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md"), 10),
    **dict.fromkeys(("CITATION.cff", "lab/a.py", "tests/a.py", "docs/a.md", "scripts/a.py"), 10),
    "clients/typescript/package.json": 10,
}
ASKED = {"name": "numpy", "version": "1.0", "vulns": []}
SKIPPED = {"name": "numba", "skip_reason": "Dependency not found"}
WEAK = {"name": "rich", "version": "2.0", "vulns": [{"id": "PYSEC-1"}]}


def audited(*rows: dict[str, Any]) -> str:
    return json.dumps({"dependencies": list(rows)})


# -- archives


def test_a_whole_wheel_has_no_problems() -> None:
    assert problems_of_wheel(WHEEL, WANTED) == []


@pytest.mark.parametrize("name", [*sorted(WANTED), "fastbandit-1.dist-info/licenses/LICENSE"])
def test_a_wheel_that_lacks_a_file_is_found(name: str) -> None:
    files = {one: size for one, size in WHEEL.items() if one != name}

    assert problems_of_wheel(files, WANTED) != []


@pytest.mark.parametrize(
    "name", ["tests/test_a.py", "lab/__init__.py", "fastbandit/left.csv", "data/a.bin"]
)
def test_a_wheel_with_more_than_the_package_is_found(name: str) -> None:
    assert problems_of_wheel({**WHEEL, name: 10}, WANTED) == [f"the wheel has {name}"]


def test_a_whole_source_archive_has_no_problems() -> None:
    assert problems_of_source(SOURCE, WANTED) == []


@pytest.mark.parametrize("name", sorted(SOURCE))
def test_a_source_archive_that_lacks_a_part_is_found(name: str) -> None:
    files = {one: size for one, size in SOURCE.items() if one != name}

    assert problems_of_source(files, WANTED) != []


@pytest.mark.parametrize("name", ["tests/data.bin", "tests/golden/files/data.bin"])
def test_a_large_file_is_taken_for_data(name: str) -> None:
    assert problems_of_source({**SOURCE, name: 10**7}, WANTED) != []


@pytest.mark.parametrize(
    ("name", "count"), [("tests/events.db", 1), ("tests/golden/files/log/events.db", 0)]
)
def test_a_log_is_left_out_unless_it_was_recorded_for_the_tests(name: str, count: int) -> None:
    assert len(problems_of_source({**SOURCE, name: 10}, WANTED)) == count


def test_the_package_consists_of_code_and_the_console() -> None:
    found = sources()

    assert "fastbandit/py.typed" in found
    assert any(name.endswith(".js") for name in found)
    assert not any("__pycache__" in name for name in found)


def test_the_laboratory_is_in_the_source_archive_and_not_in_the_wheel() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]

    assert targets == {"targets": targets["targets"]}  # nothing is forced into both
    assert targets["targets"]["wheel"] == {"packages": ["fastbandit"]}
    assert "/lab" in targets["targets"]["sdist"]["include"]
    assert all(name.startswith("fastbandit/") for name in sources())


# -- licences


@pytest.mark.parametrize(
    "licence", ["MIT", "MIT AND BSD-3-Clause", "GPL-3.0 OR MIT", "MIT; BSD License"]
)
def test_a_licence_that_is_allowed_passes(licence: str) -> None:
    rows = [{"Name": "some", "Version": "1", "License": licence}]

    assert problems_of_licences(rows, read_allowed()) == []


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "MIT AND GPL-3.0", "X AND (GPL-3.0 OR MIT)", "UNKNOWN", ""]
)
def test_a_licence_that_is_not_allowed_is_named(licence: str) -> None:
    rows = [{"Name": "some", "Version": "1", "License": licence}]

    (said,) = problems_of_licences(rows, read_allowed())
    assert said.startswith("some 1 is under")


def test_a_package_that_was_looked_at_passes_until_its_licence_changes() -> None:
    allowed = Allowed(frozenset(), {"some": "any-OSI"})
    row = {"Name": "Some", "Version": "1", "License": "any-OSI"}

    assert problems_of_licences([row], allowed) == []
    assert problems_of_licences([{**row, "License": "GPL"}], allowed) != []


# -- the audit


def test_an_audit_that_was_answered_is_clean() -> None:
    assert audit_of(audited(ASKED), "").state == "clean"


def test_a_weakness_is_named() -> None:
    found = audit_of(audited(ASKED, WEAK, SKIPPED), "")

    assert (found.state, found.found) == ("vulnerable", ("rich 2.0: PYSEC-1",))


@pytest.mark.parametrize(
    "printed", ["", "{}", audited(), audited(ASKED, SKIPPED), audited(SKIPPED)]
)
def test_an_audit_that_was_not_answered_is_no_pass(printed: str) -> None:
    assert audit_of(printed, "ConnectionError: no route").state == "could not be asked"


def test_what_pip_itself_is_does_not_count() -> None:
    skipped = {"name": "fastbandit", "skip_reason": "Dependency not found"}

    assert audit_of(audited(ASKED, skipped), "").state == "clean"


# -- the exit status


@pytest.mark.parametrize(
    ("release", "status"),
    [
        (Release(audits={"base": "clean"}), 0),
        (Release(audits={"base": "clean", "serve": "could not be asked"}), UNASKED),
        (Release(audits={"base": "vulnerable", "serve": "could not be asked"}), 1),
        (Release(problems=["the wheel lacks LICENSE"], audits={"base": "clean"}), 1),
    ],
)
def test_the_exit_status_tells_unasked_from_clean(release: Release, status: int) -> None:
    assert release.status == status


@pytest.mark.parametrize(
    ("megabytes", "import_s", "count"), [(100, 0.1, 0), (160, 0.1, 1), (160, 0.3, 2)]
)
def test_a_base_install_that_is_too_large_or_slow_is_found(
    megabytes: int, import_s: float, count: int
) -> None:
    told = {"downloaded_bytes": {"some.whl": megabytes * 1_000_000}, "import_s": import_s}

    assert len(problems_of(told)) == count
