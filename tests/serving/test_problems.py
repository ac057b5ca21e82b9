"""Rejections: each names what came and what to do, and each kind is documented."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import fastbandit
from fastbandit.serving.problems import Rejection, rejection_of_body, shortened, wrong_field
from fastbandit.serving.schemas import ArmUpsert, Reward, SelectRequest, UpsertArmsRequest

ROOT = Path(fastbandit.__file__).parent
TITLES = sorted(
    {
        title
        for path in (ROOT / "serving").glob("*.py")
        for title in re.findall(r'Rejection\(\s*\d+,\s*"([^"]+)"', path.read_text())
    }
    | {"no key", "no right"}
)


def test_the_titles_are_found() -> None:
    assert {"wrong field", "not JSON", "overloaded", "not written"} <= set(TITLES)


@pytest.mark.parametrize("title", TITLES)
def test_a_kind_of_rejection_is_documented(title: str) -> None:
    assert f"\n| {title} | " in (ROOT.parent / "docs" / "serving.md").read_text()


@pytest.mark.parametrize("value", ["\ud800", "a\x00b", "x" * 10_000, [1] * 10_000, "‮evil"])
def test_what_came_is_shown_in_characters_that_are_safe_anywhere(value: object) -> None:
    shown = shortened(value)

    assert len(shown) <= 201
    assert shown.rstrip("…").isascii()


def test_a_rejection_has_all_parts() -> None:
    problem = Rejection(
        422, "wrong field", "Too few.", fix="Send more.", field="k", value=0
    ).problem

    assert (problem.field, problem.value, problem.fix) == ("k", "0", "Send more.")


@pytest.mark.parametrize(
    ("kind", "body", "field", "value"),
    [
        (UpsertArmsRequest, '{"arms":[{"id":"a","vector":[1,2]}]}', "arms[0].vector", "[1, 2]"),
        (SelectRequest, '{"context":[1],"baseline":{"prop":0.5}}', "baseline.prop", "0.5"),
        (SelectRequest, '{"contxt":[1]}', "contxt", "[1]"),
        (SelectRequest, '{"context":[1,"x"]}', "context[1]", "x"),
        (SelectRequest, "3", "body", "3"),
    ],
)
def test_a_body_of_another_shape_is_reported_by_the_field(
    kind: type, body: str, field: str, value: str
) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=kind)

    problem = rejection_of_body(caught.value, body.encode()).problem

    assert (problem.field, problem.value) == (field, value)


def test_an_answer_to_a_wrong_request_is_short_whatever_came() -> None:
    for text in ("x" * 10_000, "é" * 10_000, "\x00" * 10_000, '"' * 10_000):
        rejection = Rejection(422, "wrong field", text, fix=text, field=text, value=text)
        assert len(rejection.body) <= 4096
    listed = wrong_field("It needs ids.", fix="Send some.", field="ids", value=[*range(300_000)])
    assert len(listed.body) < 1_000


@pytest.mark.parametrize("id", ["abc\n", "\n", "abc\r"])
def test_a_pattern_ends_at_the_end(id: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"context": [1.0], "id": id}, SelectRequest)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"id": id}, ArmUpsert)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"decision": "a", "value": 1.0, "part": id}, Reward)
