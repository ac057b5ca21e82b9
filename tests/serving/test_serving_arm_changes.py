"""Arms that are put or deleted over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastbandit.settings.service import Config
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import ARMS, CONTEXT, Caller, run


def log_of(config: Config) -> list[Any]:
    log = SqliteLog(Path(config.server.data_dir) / "events.db", is_reader=True)
    events = list(log.read())
    log.close()
    return events


def test_an_arm_that_is_put_can_be_chosen_and_one_that_is_deleted_cannot(config: Config) -> None:
    arm = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 99, "colour": "green"}}

    async def story(ask: Caller) -> None:
        put = (await ask("PUT", "/v1/arms", {"arms": [arm]})).body
        assert (put["added"], put["arms"]) == (1, ARMS + 1)
        assert (await ask.select(eligible={"price": {">": 50}}))["arms"] == ["new"]
        gone = (await ask("DELETE", "/v1/arms", {"ids": ["new", "nobody"]})).body
        assert (gone["removed"], gone["unknown"], gone["arms"]) == (1, ["nobody"], ARMS)
        reply = await ask("POST", "/v1/select", {"context": CONTEXT, "eligible": ["new"]})
        assert reply.status == 422

    run(config, story)


def test_a_change_that_changes_nothing_leaves_no_trace(config: Config) -> None:
    arm = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 9, "colour": "red"}}

    async def story(ask: Caller) -> None:
        first = (await ask("PUT", "/v1/arms", {"arms": [arm]})).body
        again = (await ask("PUT", "/v1/arms", {"arms": [arm]})).body
        gone = (await ask("DELETE", "/v1/arms", {"ids": ["nobody"]})).body
        assert (gone["removed"], gone["unknown"]) == (0, ["nobody"])
        assert first["catalogue"] == again["catalogue"] == gone["catalogue"]

    run(config, story)
    assert len(log_of(config)) == 1


def test_the_arms_are_the_same_after_a_restart(config: Config) -> None:
    arm = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 99, "colour": "green"}}

    async def change(ask: Caller) -> Any:
        await ask("PUT", "/v1/arms", {"arms": [arm]})
        await ask("DELETE", "/v1/arms", {"ids": ["arm-0"]})
        return (await ask("GET", "/v1/status")).body["catalogue"]

    async def look(ask: Caller) -> Any:
        assert (await ask.select(eligible=["new"]))["arms"] == ["new"]
        gone = await ask("POST", "/v1/select", {"context": CONTEXT, "eligible": ["arm-0"]})
        assert gone.status == 422
        return (await ask("GET", "/v1/status")).body["catalogue"]

    assert run(config, change) == run(config, look)


def test_putting_the_same_arm_again_changes_nothing(config: Config) -> None:
    arm = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 9, "colour": "red"}}
    other = {**arm, "features": [5.0, 5.0, 5.0]}
    dearer = {**other, "columns": {"price": 10, "colour": "red"}}

    async def story(ask: Caller) -> None:
        counts = []
        for one in (arm, arm, other, dearer):
            put = (await ask("PUT", "/v1/arms", {"arms": [one]})).body
            counts.append((put["added"], put["changed"], put["unchanged"]))
        assert counts == [(1, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 0)]

    run(config, story)


@pytest.mark.parametrize(
    "arms",
    [
        [{"id": "new", "features": [0.1], "columns": {"price": 9, "colour": "red"}}],
        [{"id": "new", "features": [0.1, 0.2, 0.3]}],
        [{"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": "x", "colour": "red"}}],
        [{"id": "", "features": [0.1, 0.2, 0.3]}],
        [{"id": "a", "features": [0.1, 0.2, 0.3]}] * 2,
    ],
)
def test_a_wrong_arm_is_rejected_and_leaves_no_trace(config: Config, arms: Any) -> None:
    async def story(ask: Caller) -> None:
        reply = await ask("PUT", "/v1/arms", {"arms": arms})
        assert reply.status == 422, reply
        assert (await ask("GET", "/v1/status")).body["arms"] == ARMS

    run(config, story)
    assert log_of(config) == []


def test_the_last_arms_cannot_be_deleted(config: Config) -> None:
    async def story(ask: Caller) -> None:
        reply = await ask("DELETE", "/v1/arms", {"ids": [f"arm-{n}" for n in range(ARMS)]})
        assert (reply.status, reply.body["field"]) == (422, "ids")

    run(config, story)
