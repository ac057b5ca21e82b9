"""Who may ask what: every route with every kind of key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastbandit.serving.keys import KEYS_FILE, create_key, revoke_key
from fastbandit.settings.service import Config
from tests.serving.little_service import CONTEXT, Caller, run

ROUTES: list[tuple[str, str, Any, str | None]] = [
    ("POST", "/v1/select", {"context": CONTEXT}, "select"),
    ("POST", "/v1/reward", {"decision": "a", "value": 1}, "reward"),
    ("PUT", "/v1/arms", {"arms": []}, "admin"),
    ("DELETE", "/v1/arms", {"ids": ["nobody"]}, "admin"),
    ("GET", "/v1/status", None, "admin"),
    ("GET", "/metrics", None, "admin"),
    ("GET", "/live", None, None),
    ("GET", "/ready", None, None),
    ("GET", "/openapi.json", None, None),
]


def new_key(config: Config, *scopes: str) -> str:
    path = Path(config.server.data_dir) / KEYS_FILE
    key, _ = create_key(path, name="test", scopes=scopes)
    return key


@pytest.mark.parametrize("scope", ["select", "reward", "admin"])
def test_a_key_opens_the_routes_of_its_scope_and_no_others(config: Config, scope: str) -> None:
    key = new_key(config, scope)

    async def story(ask: Caller) -> None:
        for method, path, told, needed in ROUTES:
            reply = await ask(method, path, told, key=key)
            is_open = needed is None or scope in (needed, "admin")
            assert (reply.status == 403) != is_open, (path, reply)
            assert reply.status != 401, (path, reply)

    run(config, story)


@pytest.mark.parametrize("key", [None, "", "nonsense", "fb_00000000_" + "A" * 43])
def test_without_a_known_key_only_open_routes_answer(config: Config, key: str | None) -> None:
    new_key(config, "admin")

    async def story(ask: Caller) -> None:
        for method, path, told, needed in ROUTES:
            reply = await ask(method, path, told, key=key)
            assert (reply.status == 401) == (needed is not None), (path, reply)
            assert needed is None or reply.headers["www-authenticate"] == "Bearer"

    run(config, story)


def test_a_revoked_key_is_rejected_without_a_restart(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.serving.access._KEYS_SECONDS", -1.0)
    key = new_key(config, "select")

    async def story(ask: Caller) -> None:
        assert (await ask("POST", "/v1/select", {"context": CONTEXT}, key=key)).status == 200
        revoke_key(Path(config.server.data_dir) / KEYS_FILE, key.split("_")[1])
        assert (await ask("POST", "/v1/select", {"context": CONTEXT}, key=key)).status == 401

    run(config, story)


def test_damaged_keys_open_nothing_and_are_reported(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.serving.access._KEYS_SECONDS", -1.0)
    key = new_key(config, "admin")

    async def story(ask: Caller) -> None:
        (Path(config.server.data_dir) / KEYS_FILE).write_text("{}")
        assert (await ask("GET", "/v1/status")).status == 401
        status = await ask("GET", "/v1/status", key=key)
        assert [reason["name"] for reason in status.body["problems"]] == ["keys"]

    run(config, story)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example"])
def test_without_keys_a_foreign_page_cannot_reach_the_service(config: Config, host: str) -> None:
    async def story(ask: Caller) -> None:
        reply = await ask("POST", "/v1/select", {"context": CONTEXT}, host=host)
        assert (reply.status, reply.body["field"]) == (403, "host")

    run(config, story)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:80", "[::1]:80", "[::1]"])
def test_without_keys_this_machine_can_ask(config: Config, host: str) -> None:
    async def story(ask: Caller) -> None:
        assert (await ask("GET", "/v1/status", host=host)).status == 200

    run(config, story)
