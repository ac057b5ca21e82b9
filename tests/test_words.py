"""Names, settings, commands, routes and pages use the field's words and none of our own."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from lab.words import (
    IN_NAMES,
    MEANT,
    Hit,
    Named,
    all_hits,
    commands,
    in_docstrings,
    in_help,
    in_names,
    in_page,
    public_names,
    routes,
    words_of,
)

LOOKED_FOR_IN = (
    "public names",
    "settings",
    "commands",
    "routes and JSON fields",
    "metrics",
    "docs",
    "docstrings",
)


@pytest.fixture(scope="module")
def found() -> dict[str, list[Hit]]:
    return all_hits()


@pytest.mark.parametrize("where", LOOKED_FOR_IN)
def test_no_banned_word_stands_in(where: str, found: dict[str, list[Hit]]) -> None:
    assert [str(hit) for hit in found[where]] == []


def test_words_are_looked_for_everywhere(found: dict[str, list[Hit]]) -> None:
    assert tuple(found) == LOOKED_FOR_IN


def test_what_is_meant_otherwise_is_a_banned_word() -> None:
    assert set(MEANT) <= set(IN_NAMES)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("put_arms", ["put", "arms"]),
        ("LogAwayError", ["log", "away", "error"]),
        ("TLSKey", ["tls", "key"]),
        ("made-up", ["made", "up"]),
    ],
)
def test_a_name_is_split_into_words(name: str, words: list[str]) -> None:
    assert words_of(name) == words


@pytest.mark.parametrize(
    ("kind", "name", "word"),
    [
        ("class", "DropoutDoubt", "doubt"),
        ("parameter", "lots", "lot"),
        ("field", "shelves", "shelve"),
        ("function", "put_arms", "put"),
        ("module", "made_up", "made-up"),
        ("field", "open", "open"),
    ],
)
def test_a_banned_word_is_seen_in_any_number(kind: str, name: str, word: str) -> None:
    assert [hit.word for hit in in_names([Named(kind, name, "here")])] == [word]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("function", "open"),
        ("parameter", "key"),
        ("parameter", "query"),
        ("function", "items"),
        ("function", "slot"),
        ("field", "placeholder"),
    ],
)
def test_a_word_that_means_what_everybody_means_may_stay(kind: str, name: str) -> None:
    assert list(in_names([Named(kind, name, "here")])) == []


def test_only_what_is_public_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "box.py"
    path.write_text(
        "class Box:\n    low: float\n    _told: int\n    def at(self, row, *, rng): lot = 1\n"
        "def _lots(lesson): ...\n"
    )

    names = [one.name for one in public_names([path])]

    assert names == ["box", "Box", "low", "at", "self", "row", "rng"]


def test_commands_options_and_their_help_are_looked_at() -> None:
    @click.group()
    def outer() -> None: ...

    @outer.command("draw", help="Ask the twin.")
    @click.option("--lots", help="How many.")
    def draw(lots: str) -> None: ...

    assert [hit.word for hit in in_names(commands(outer))] == ["lot"]
    assert [hit.word for hit in in_help(outer)] == ["twin"]


def test_fields_of_answers_are_looked_at_wherever_they_stand() -> None:
    described = {
        "paths": {"/v1/lots": {"get": {"parameters": [{"name": "turn"}]}}},
        "components": {"schemas": {"A": {"properties": {"told": {"properties": {"id": {}}}}}}},
    }

    assert [hit.word for hit in in_names(routes(described))] == ["lot", "turn", "told"]


def test_former_names_and_private_words_are_seen_in_a_page(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("The doubt of a model.\nCall `put_arms(ids)`.\nNo doubtless hit.\n")

    assert [hit.word for hit in in_page(path)] == ["doubt", "put_arms"]


def test_a_docstring_says_return(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text('def f():\n    """Give 1."""\ndef g():\n    """Return 1."""\n')

    assert [hit.word for hit in in_docstrings([path])] == ["give"]
