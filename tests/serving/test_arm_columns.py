"""Answers have columns of their arms where they are asked for, and arms have titles to read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fastbandit import Bandit
from fastbandit.errors import DataError
from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.serving.arm_columns import titles_of
from fastbandit.serving.console.answer import Console
from fastbandit.settings.service import Config, ShadowConfig
from fastbandit.storage.snapshot_store import SnapshotStore
from tests.serving.little_service import CONTEXT, Caller, config_in, run

PRICES = {f"arm-{row}": float(row) for row in range(12)}


def colour_of(arm: str) -> str:
    return "red" if PRICES[arm] % 2 else "blue"


def columns_of(arms: list[str]) -> list[Any]:
    return [{"price": PRICES[arm], "colour": colour_of(arm)} for arm in arms]


def test_an_answer_has_the_columns_of_its_arms_in_their_order(config: Config) -> None:
    async def story(ask: Caller) -> None:
        one = await ask.select(k=3, columns=["price", "colour"])
        assert one["columns"] == columns_of(one["arms"])
        body = {"contexts": [CONTEXT, CONTEXT], "k": 2, "columns": ["price", "colour"]}
        for answer in (await ask("POST", "/v1/select", body)).body["decisions"]:
            assert answer["columns"] == columns_of(answer["arms"])

    run(config, story)


def test_an_answer_that_was_not_asked_for_columns_has_none(config: Config) -> None:
    async def story(ask: Caller) -> None:
        assert "columns" not in await ask.select()
        assert "columns" not in await ask.select(columns=[])

    run(config, story)


def test_shadow_mode_answers_with_the_columns_of_the_arm_that_was_taken(config: Config) -> None:
    config = replace(config, shadow=ShadowConfig(baseline="request"))

    async def story(ask: Caller) -> None:
        answer = await ask.select(baseline={"arm": "arm-4"}, columns=["price"])
        assert (answer["arms"], answer["columns"]) == (["arm-4"], [{"price": 4.0}])

    run(config, story)


def test_a_retry_has_the_columns_of_now_and_null_for_an_arm_that_is_gone(config: Config) -> None:
    async def story(ask: Caller) -> None:
        first = await ask.select(id="one", k=2, columns=["price"])
        changed, gone = first["arms"]
        new = {"id": changed, "features": [1, 2, 3], "columns": {"price": 99, "colour": "red"}}
        await ask("PUT", "/v1/arms", {"arms": [new]})
        await ask("DELETE", "/v1/arms", {"ids": [gone]})

        again = await ask.select(id="one", k=2, columns=["price"])

        assert again == {**first, "columns": [{"price": 99.0}, None]}

    run(config, story)


@pytest.mark.parametrize(("name", "fix"), [("prise", "'price'"), ("title", "arms.title")])
def test_an_unknown_column_is_named_with_those_there_are(
    config: Config, name: str, fix: str
) -> None:
    async def story(ask: Caller) -> None:
        body = {"context": CONTEXT, "columns": ["price", name]}
        reply = await ask("POST", "/v1/select", body)
        assert (reply.status, reply.body["field"], reply.body["value"]) == (422, "columns[1]", name)
        assert "colour" in reply.body["detail"]
        assert fix in reply.body["fix"]
        assert ask.service.last_event == 0

    run(config, story)


# -- titles


def frozen(**columns: list[Any]) -> FrozenBandit:
    return Bandit(ids=["a", "b", 7], context=2, columns=columns or None).freeze()


@pytest.mark.parametrize(
    ("setting", "columns", "expected"),
    [
        ("", {"Title": ["A", "", "C"]}, {"a": "A", 7: "C"}),
        ("", {"label": ["x", "y", "z"], "title": ["A", "B", "C"]}, {"a": "A", "b": "B", 7: "C"}),
        ("head", {"head": ["A", "B", "C"], "title": ["x", "y", "z"]}, {"a": "A", "b": "B", 7: "C"}),
        ("", {"title": [1.0, 2.0, 3.0]}, {}),
        ("", {"brand": ["x", "y", "z"]}, {}),
        ("head", {"title": ["A", "B", "C"]}, {}),
        ("", {}, {}),
    ],
)
def test_a_title_is_in_the_column_of_the_setting_or_of_a_usual_name(
    setting: str, columns: dict[str, list[Any]], expected: dict[Any, str]
) -> None:
    assert titles_of(frozen(**columns), ["a", "b", 7, "none", None], setting=setting) == expected


def test_a_long_title_is_cut() -> None:
    (title,) = titles_of(frozen(title=["x" * 500, "", ""]), ["a"], setting="").values()

    assert (len(title), title[-1]) == (120, "…")


def test_an_arm_that_is_gone_still_has_its_title() -> None:
    bandit = frozen(title=["A", "B", "C"])
    bandit.discard_arms(["a"])

    assert titles_of(bandit, ["a"], setting="") == {"a": "A"}


ARMS = "id,headline,a\n" + "".join(
    f"{id},{id} says {'much more ' * n}in {n} words,{n % 3}\n" for n, id in enumerate("stuvwxyz")
)


@pytest.fixture
def titled(tmp_path: Path) -> Config:
    path = tmp_path / "arms.csv"
    path.write_text(ARMS)
    given = {"arms__file": str(path), "arms__title": "headline"}
    config = config_in(tmp_path, **given)
    publish_initial_version(config, SnapshotStore(tmp_path / "snapshots"))
    return config


def test_the_column_of_the_titles_stays_whatever_else_it_is(titled: Config) -> None:
    async def story(ask: Caller) -> None:
        features = {"headline": "a new one", "a": 1.0}
        reply = await ask("PUT", "/v1/arms", {"arms": [{"id": "n", "features": features}]})
        assert reply.status == 200, reply
        answer = await ask.select(columns=["headline"], eligible=["n"])
        assert answer["columns"] == [{"headline": "a new one"}]

    run(titled, story)


def test_the_console_has_the_titles_of_the_arms_that_it_shows(titled: Config) -> None:
    async def story(ask: Caller) -> None:
        (arm,) = (await ask.select())["arms"]

        shown = msgspec.convert((await ask("GET", "/v1/console")).body, Console)

        (title,) = shown.titles
        assert (title[0], title[1][:6]) == (arm, f"{arm} says")

    run(titled, story)


def test_a_title_that_the_file_lacks_is_named(titled: Config) -> None:
    wrong = replace(titled, arms=replace(titled.arms, title="caption"))

    with pytest.raises(DataError, match=r"'caption'.*headline.*arms\.title"):
        publish_initial_version(wrong, SnapshotStore(Path(titled.server.data_dir) / "other"))
