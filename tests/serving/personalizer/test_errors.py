"""A bad request gets the documented code and body, and costs nothing that was stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from fastbandit.serving.keys import create_key
from fastbandit.settings.service import Config
from tests.serving.little_named import events_of
from tests.serving.personalizer.little_personalizer import (
    CONTEXT,
    NEW,
    OLD,
    Client,
    action,
    rank_of,
    tell,
)
from tests.serving.test_server import serving

RANK, REWARD = "/rank", "/events/one/reward"
BAD: dict[str, tuple[str, Any, int, str, str | None]] = {
    "no actions": (RANK, rank_of(), 400, "InvalidRankRequest", "actions"),
    "duplicate ids": (RANK, rank_of("x", "x"), 400, "InvalidRankRequest", "actions[1].id"),
    "too many": (RANK, rank_of(*map(str, range(51))), 400, "InvalidRankRequest", "actions"),
    "all excluded": (
        RANK,
        rank_of("x", excludedActions=["x"]),
        400,
        "InvalidRankRequest",
        "excludedActions",
    ),
    "an empty id": (RANK, rank_of("x", ""), 400, "InvalidRankRequest", "actions[1].id"),
    "a long id": (RANK, rank_of("x" * 257), 400, "InvalidRankRequest", "actions[0].id"),
    "a long event": (RANK, rank_of("x", eventId="e" * 257), 400, "InvalidRankRequest", "eventId"),
    "a declared feature left out": (
        RANK,
        rank_of("x", contextFeatures=[{"country": "DE"}]),
        400,
        "InvalidRankRequest",
        "contextFeatures.age",
    ),
    "an object for a number": (
        RANK,
        rank_of("x", contextFeatures=[*CONTEXT, {"age": {"years": 31}}]),
        400,
        "InvalidRankRequest",
        "contextFeatures.age",
    ),
    "a feature of another kind": (
        RANK,
        {
            "contextFeatures": rank_of("x")["contextFeatures"],
            "actions": [action("x", price="dear")],
        },
        400,
        "InvalidRankRequest",
        "actions[0].features.price",
    ),
    "a feature of another kind behind an excluded action": (
        RANK,
        rank_of("w", excludedActions=["w"])
        | {"actions": [action("w"), action("x"), action("y", price="dear")]},
        400,
        "InvalidRankRequest",
        "actions[2].features.price",
    ),
    "a feature of another kind for slots": (
        "/multislot/rank",
        {
            "contextFeatures": CONTEXT,
            "actions": [action("w"), action("x", price="dear")],
            "slots": [{"id": "top", "baselineAction": "x", "excludedActions": ["w"]}],
        },
        400,
        "InvalidRankRequest",
        "actions[1].features.price",
    ),
    "features that are no objects": (
        RANK,
        rank_of("x", contextFeatures=[1]),
        400,
        "InvalidRankRequest",
        "contextFeatures[0]",
    ),
    "a reward above 1": (REWARD, {"value": 1.5}, 400, "InvalidRewardRequest", "value"),
    "a reward below -1": (REWARD, {"value": -7}, 400, "InvalidRewardRequest", "value"),
    "a reward that is a text": (REWARD, {"value": "1"}, 400, "InvalidRewardRequest", "value"),
    "no reward": (REWARD, {}, 400, "InvalidRewardRequest", "body"),
    "a long event to activate": (
        f"/events/{'e' * 257}/activate",
        None,
        400,
        "InvalidEventIdToActivate",
        "eventId",
    ),
    "a path that is none": ("/ranks", {}, 404, "ResourceNotFound", "path"),
    "a large body": (RANK, rank_of("x" * 2_000_000), 413, "PayloadSizeExceeded", "body"),
}


@pytest.mark.parametrize("named", BAD)
def test_a_bad_request_says_what_is_wrong_and_nothing_is_stored(config: Config, named: str) -> None:
    path, body, status, code, target = BAD[named]

    async def story(client: Client) -> None:
        await client.rank("x", "y", eventId="one")
        reply = await client("POST", path, body)
        error = reply.body["error"]
        assert (reply.status, error["code"], error.get("target")) == (status, code, target), reply
        assert reply.headers["content-type"] == "application/json"
        assert (await client("POST", REWARD, {"value": 0.5})).status == 204

    tell(config, story, base=NEW)
    made, came = events_of(config)
    assert (made.id, came.status) == ("one", "counted")


@pytest.mark.parametrize("raw", [b'{"value": NaN}', b'{"value": 1e999}', b"{", b"\xff", b""])
def test_a_reward_that_is_no_json_number_is_rejected(config: Config, raw: bytes) -> None:
    async def story(client: Client) -> None:
        await client.rank("x", "y", eventId="one")
        reply = await client("POST", REWARD, raw=raw)
        assert (reply.status, reply.body["error"]["code"]) == (400, "BadRequest"), reply
        assert reply.body["error"]["innerError"] == {"code": "InvalidRewardRequest"}

    tell(config, story, base=OLD)
    assert len(events_of(config)) == 1


def test_old_clients_get_the_few_codes_that_they_know(config: Config) -> None:
    async def story(client: Client) -> None:
        reply = await client("POST", RANK, rank_of("x", "x"))
        error = reply.body["error"]
        assert (error["code"], error["innerError"]["code"]) == ("BadRequest", "InvalidRankRequest")

    tell(config, story, base=OLD)


def test_other_methods_are_rejected(config: Config) -> None:
    async def story(client: Client) -> None:
        reply = await client("GET", RANK)
        assert (reply.status, reply.headers["allow"]) == (405, "POST")
        assert "error" in reply.body

    tell(config, story)


def test_a_key_needs_to_be_known_and_to_have_the_scope(config: Config, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key, _ = create_key(path, name="shop", scopes=("select",))

    async def story(client: Client) -> None:
        for wrong in ("", "fb_no_key", key[:-1]):
            more = ((b"ocp-apim-subscription-key", wrong.encode()),)
            reply = await client("POST", RANK, rank_of("x", "y"), more=more)
            assert (reply.status, reply.body["error"]["code"]) == (401, "401")
        more = ((b"ocp-apim-subscription-key", key.encode()),)
        assert (await client("POST", RANK, rank_of("x", "y"), more=more)).status == 201
        reply = await client("POST", REWARD, {"value": 1}, more=more)
        assert (reply.status, reply.body["error"]["code"]) == (403, "403")

    tell(config, story)
    assert len(events_of(config)) == 1


def test_without_keys_a_page_of_another_site_cannot_send_a_form(config: Config) -> None:
    async def story(client: Client) -> None:
        form = ((b"content-type", b"text/plain"),)
        assert (await client("POST", RANK, rank_of("x"), more=form)).status == 415
        own = ((b"ocp-apim-subscription-key", b"any"),)
        assert (await client("POST", RANK, rank_of("x"), more=own)).status == 201

    tell(config, story)


def test_the_setting_opens_more_actions(config: Config) -> None:
    more = replace(config, personalizer=replace(config.personalizer, max_actions=200))

    async def story(client: Client) -> None:
        found = await client.rank(*map(str, range(120)))
        assert len(found["ranking"]) == 120

    tell(more, story)


def test_nothing_is_served_where_it_is_not_enabled(named: Config) -> None:
    async def story(client: Client) -> None:
        reply = await client("POST", RANK, rank_of("x"))
        assert (reply.status, reply.body["title"]) == (404, "no such route")

    tell(named, story)


def test_under_overload_each_interface_has_errors_of_its_own(make: Callable[..., Config]) -> None:
    with serving(make(server__port=0)) as server, httpx.Client(base_url=server.url) as client:
        app: Any = server.config.app
        app.capacity.most = 0  # no request has room
        ranked = client.post(f"{NEW}/rank", json=rank_of("x", "y"))
        selected = client.post("/v1/select", json={"context": {}})

        assert (ranked.status_code, ranked.headers["retry-after"]) == (503, "1")
        assert ranked.json()["error"]["code"] == "InternalServerError"
        assert ranked.headers["content-type"] == "application/json"
        assert (selected.status_code, selected.json()["title"]) == (503, "overloaded")
