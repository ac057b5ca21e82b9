"""What the service answers: selects, rewards, arms, and rejections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastbandit.settings.service import Config
from tests.serving.little_service import Caller, config_in, run

# -- select


@pytest.mark.parametrize("raw", [b"", b"{", b'{"k": NaN}', b'{"context": [Infinity]}', b"\xff\xfe"])
def test_a_body_that_is_no_json_is_rejected(config: Config, raw: bytes) -> None:
    async def story(ask: Caller) -> None:
        reply = await ask("POST", "/v1/select", raw=raw)
        assert (reply.status, reply.body["field"]) == (400, "body")

    run(config, story)


def test_a_body_over_the_limit_is_rejected_before_it_is_read_whole(
    first_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "snapshots").symlink_to(first_folder / "snapshots")

    async def story(ask: Caller) -> None:
        reply = await ask("POST", "/v1/select", raw=b" " * 500, pieces=5)
        assert reply.status == 413

    run(config_in(tmp_path, server__max_body_bytes=100), story)


# -- rewards


# -- arms


# -- what it is now


def test_an_unknown_path_and_a_wrong_method_say_what_there_is(config: Config) -> None:
    async def story(ask: Caller) -> None:
        assert (await ask("GET", "/v1/selekt")).status == 404
        wrong = await ask("GET", "/v1/select")
        assert (wrong.status, wrong.headers["allow"]) == (405, "POST")

    run(config, story)


def test_the_root_leads_to_the_console_where_there_is_one(config: Config, tmp_path: Path) -> None:
    async def story(ask: Caller) -> Any:
        return await ask("GET", "/")

    reply = run(config, story)
    assert (reply.status, reply.headers["location"]) == (307, "/console/")
    assert run(config_in(tmp_path / "other", server__console=False), story).status == 404
