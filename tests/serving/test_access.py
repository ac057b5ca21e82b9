"""Who may ask what: every route with every kind of key."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from fastbandit.serving.access import Access
from fastbandit.serving.keys import KEYS_FILE, KeyRing, create_key, revoke_key
from fastbandit.serving.problems import Rejection
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


# -- pages of other sites, without keys


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ((b"origin", b"https://evil.example"), "origin"),
        ((b"origin", b"null"), "origin"),
        ((b"origin", b"http://localhost:3000"), "origin"),
        ((b"sec-fetch-site", b"cross-site"), "sec-fetch-site"),
        ((b"sec-fetch-site", b"same-site"), "sec-fetch-site"),
    ],
)
def test_without_keys_a_page_of_another_site_is_refused(
    config: Config, more: tuple[bytes, bytes], field: str
) -> None:
    async def story(ask: Caller) -> None:
        headers = [(b"content-type", b"application/json"), more]
        for method, path, told, needed in ROUTES:
            reply = await ask(method, path, told, more=headers)
            assert (reply.status == 403) == (needed is not None), (path, reply)
            assert needed is None or reply.body["field"] == field

    run(config, story)


def test_the_console_and_what_a_person_types_pass(config: Config) -> None:
    own = [(b"content-type", b"application/json"), (b"sec-fetch-site", b"same-origin")]
    own.append((b"origin", b"http://localhost:8080"))

    async def story(ask: Caller) -> None:
        assert (await ask("POST", "/v1/select", {"context": CONTEXT}, more=own)).status == 200
        assert (await ask("GET", "/v1/status", more=[(b"sec-fetch-site", b"none")])).status == 200

    run(config, story)


@pytest.mark.parametrize("kind", [b"text/plain", b"application/x-www-form-urlencoded", None])
def test_without_keys_a_change_needs_to_say_that_it_is_json(
    config: Config, kind: bytes | None
) -> None:
    async def story(ask: Caller) -> None:
        more = [] if kind is None else [(b"content-type", kind)]
        reply = await ask("POST", "/v1/select", {"context": CONTEXT}, more=more)
        assert (reply.status, reply.body["field"]) == (415, "content-type")
        assert (await ask("GET", "/v1/status", more=more)).status == 200

    run(config, story)


def test_with_a_key_the_site_and_the_type_do_not_matter(config: Config) -> None:
    key = new_key(config, "select")

    async def story(ask: Caller) -> None:
        more = [(b"origin", b"https://shop.example"), (b"sec-fetch-site", b"cross-site")]
        reply = await ask("POST", "/v1/select", {"context": CONTEXT}, key=key, more=more)
        assert reply.status == 200

    run(config, story)


@pytest.mark.parametrize("name", [b"host", b"authorization", b"content-type"])
def test_a_header_that_counts_may_come_once(config: Config, name: bytes) -> None:
    async def story(ask: Caller) -> None:
        twice = [(name, b"localhost:8080"), (name, b"localhost:8080")]
        for path in ("/live", "/v1/status"):
            reply = await ask("GET", path, more=twice)
            assert (reply.status, reply.body["field"]) == (400, name.decode())
        assert (await ask("GET", "/live", more=[(b"x", b"1"), (b"x", b"2")])).status == 200

    run(config, story)


def test_a_key_that_expired_opens_nothing(config: Config) -> None:
    path = Path(config.server.data_dir) / KEYS_FILE
    day = date(2026, 1, 1)
    key, _ = create_key(path, name="old", scopes=["admin"], expires=day, today=day)
    times = iter([datetime(2026, 1, 1, 23, 59, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)])
    ring = KeyRing.load(path, clock=lambda: next(times).timestamp())
    access = Access(ring)
    headers = {b"authorization": f"Bearer {key}".encode()}

    assert access.admit(headers, "select", is_change=True) == key.split("_")[1]
    with pytest.raises(Rejection, match="the key is expired") as caught:
        access.admit(headers, "select", is_change=True)
    assert caught.value.status == 401


def test_an_expired_key_is_refused_by_every_route_that_needs_one(config: Config) -> None:
    path = Path(config.server.data_dir) / KEYS_FILE
    day = date(2020, 1, 1)
    key, _ = create_key(path, name="old", scopes=["admin"], expires=day, today=day)

    async def story(ask: Caller) -> None:
        for method, route, told, needed in ROUTES:
            reply = await ask(method, route, told, key=key)
            assert (reply.status == 401) == (needed is not None), (route, reply)

    run(config, story)
