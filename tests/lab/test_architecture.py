"""The floors are read from the imports of the code, and drawn from them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lab import architecture
from lab.architecture import (
    FLOORS,
    PICTURE,
    Import,
    architecture_command,
    as_svg,
    as_text,
    broken,
    direct,
    imports_in,
    level_of,
    two_way_pairs,
    unused_reasons,
)


def imported(importer: str, name: str) -> Import:
    return Import(f"fastbandit.{importer}", f"fastbandit.{name}", f"fastbandit/{importer}.py", 1)


def test_an_import_is_seen_wherever_it_stands(tmp_path: Path) -> None:
    package = tmp_path / "fastbandit"
    (package / "arms").mkdir(parents=True)
    (package / "arms" / "box.py").write_text(
        "from fastbandit import Greedy, __version__\n"
        "from fastbandit.arms.index import Index\n"
        "def lazy():\n    import fastbandit.errors\n"
    )

    found = imports_in(package)

    assert [(one.importer, one.imported, one.line) for one in found] == [
        ("fastbandit.arms.box", "fastbandit.exploration", 1),
        ("fastbandit.arms.box", "fastbandit.errors", 4),
    ]


def test_an_import_that_points_up_is_broken() -> None:
    up, down = imported("arms", "policy"), imported("policy", "arms")

    assert broken([up, down]) == [up]


def test_a_neighbour_needs_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    sideways = imported("search", "reward")
    assert broken([sideways]) == [sideways]

    monkeypatch.setattr(architecture, "NEIGHBOURS", {("search", "reward"): "because"})

    assert broken([sideways]) == []
    assert unused_reasons([sideways]) == set()
    assert unused_reasons([]) == {("search", "reward")}


def test_rooms_that_import_each_other_are_found_through_a_third() -> None:
    ring = [imported("a", "b"), imported("b", "c"), imported("c", "a"), imported("a", "d")]

    assert two_way_pairs(ring) == [("a", "b"), ("a", "c"), ("b", "c")]


def test_a_room_without_a_floor_is_an_error_that_says_where_to_add_it() -> None:
    with pytest.raises(click.ClickException, match="attic needs a floor"):
        level_of("attic")


def test_a_line_that_follows_from_others_is_not_drawn() -> None:
    assert direct({"cli": {"bandit", "arms"}, "bandit": {"arms"}}) == [
        ("cli", "bandit"),
        ("bandit", "arms"),
    ]


def test_every_room_is_drawn() -> None:
    rooms = [room for floor in FLOORS for room in floor]
    imports = [imported("policy", "arms")]

    assert all(f">{room}</text>" in as_svg(imports) for room in rooms)
    assert all(room in as_text(imports) for room in rooms)


def test_the_picture_is_that_of_the_code() -> None:
    drawn = PICTURE.read_text(encoding="utf-8")

    assert drawn == as_svg(imports_in()), "Run: python -m lab architecture"


def test_a_broken_import_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architecture, "imports_in", lambda: (imported("arms", "policy"),))

    done = CliRunner().invoke(architecture_command, ["--check"])

    assert done.exit_code == 1
    assert "fastbandit/arms.py:1 imports fastbandit.policy" in done.output
