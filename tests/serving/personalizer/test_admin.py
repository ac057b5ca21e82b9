"""Policy, model and log are shown; what is not carried over says so, and why."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.settings.service import Config
from tests.serving.personalizer.little_personalizer import NEW, Client, tell


def test_the_model_comes_as_a_file_that_can_be_loaded(config: Config, tmp_path: Path) -> None:
    async def story(client: Client) -> bytes:
        reply = await client("GET", "/model")
        assert reply.headers["content-type"] == "application/octet-stream"
        properties = (await client("GET", "/model/properties")).body
        assert properties["creationTime"] <= properties["lastModifiedTime"]
        return bytes(reply.body)

    with zipfile.ZipFile(io.BytesIO(tell(config, story, base=NEW))) as archive:
        archive.extractall(tmp_path / "model")
    assert len(FrozenBandit.load(tmp_path / "model")) == 4


def test_the_log_says_from_when_to_when_it_is(config: Config) -> None:
    async def story(client: Client) -> None:
        assert (await client("GET", "/logs/properties")).status == 404
        for _ in range(3):
            await client.rank("x", "y")
        found = (await client("GET", "/logs/properties")).body
        assert (found["decisions"], found["rewards"]) == (3, 0)
        assert "2020" < found["dateRange"]["from"] <= found["dateRange"]["to"]

    tell(config, story, base=NEW)


def test_the_policy_is_shown_and_may_be_put_as_it_is(config: Config) -> None:
    async def story(client: Client) -> None:
        own = (await client("GET", "/configurations/policy")).body
        assert "--exploration ts" in own["arguments"]
        assert (await client("PUT", "/configurations/policy", own)).body == own
        reply = await client("DELETE", "/configurations/policy")
        assert (reply.status, reply.body) == (200, own)

    tell(config, story, base=NEW)


def test_the_status_says_whether_the_service_decides(config: Config) -> None:
    async def story(client: Client) -> None:
        assert (await client("GET", "/status")).body["apiStatus"] == "Valid"

    tell(config, story)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/configurations/policy", {"name": "vw", "arguments": "--cb_explore_adf"}),
        ("POST", "/configurations/applyFromEvaluation", {"evaluationId": "x", "policyName": "y"}),
        ("PUT", "/model", {}),
        ("POST", "/logs/interactions", {}),
        ("POST", "/logs/observations", {}),
        ("GET", "/model?signed=true", None),
    ],
)
def test_what_is_not_carried_over_says_why(
    config: Config, method: str, path: str, body: Any
) -> None:
    async def story(client: Client) -> None:
        reply = await client(method, path, body)
        assert (reply.status, reply.body["error"]["code"]) == (501, "OperationNotAllowed"), reply
        assert len(reply.body["error"]["message"]) > 40

    tell(config, story, base=NEW)
