"""Refusals: each names what came and what to do, and each kind is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fastbandit
from fastbandit.serving.problems import Refusal, shortened

ROOT = Path(fastbandit.__file__).parent
TITLES = sorted(
    {
        title
        for path in (ROOT / "serving").glob("*.py")
        for title in re.findall(r'Refusal\(\s*\d+,\s*"([^"]+)"', path.read_text())
    }
    | {"no key", "no right"}
)


def test_the_titles_are_found() -> None:
    assert {"wrong field", "not JSON", "overloaded", "not written"} <= set(TITLES)


@pytest.mark.parametrize("title", TITLES)
def test_a_kind_of_refusal_is_documented(title: str) -> None:
    assert f"\n| {title} | " in (ROOT.parent / "docs" / "serving.md").read_text()


@pytest.mark.parametrize("value", ["\ud800", "a\x00b", "x" * 10_000, [1] * 10_000, "‮evil"])
def test_what_came_is_shown_in_characters_that_are_safe_anywhere(value: object) -> None:
    shown = shortened(value)

    assert len(shown) <= 201
    assert shown.rstrip("…").isascii()


def test_a_refusal_has_all_parts() -> None:
    problem = Refusal(422, "wrong field", "Too few.", fix="Send more.", field="k", value=0).problem

    assert (problem.field, problem.value, problem.fix) == ("k", "0", "Send more.")
