"""The vendor's own client in Python, unmodified, against a service that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import (
    ErrorResponseException,
    RankableAction,
    RankRequest,
)
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError

from fastbandit.serving.keys import create_key
from fastbandit.settings.service import Config
from tests.serving.little_named import events_of
from tests.serving.personalizer.little_personalizer import CONTEXT, action
from tests.serving.personalizer.little_process import served

pytestmark = pytest.mark.slow


def request(*ids: str, **more: Any) -> RankRequest:
    actions = [RankableAction(**action(id)) for id in ids]
    return RankRequest(actions=actions, context_features=CONTEXT, **more)


@pytest.fixture
def config(make: Callable[..., Config]) -> Config:
    return make(learn__enabled=False)


@pytest.fixture
def client(config: Config, tmp_path: Path) -> Iterator[PersonalizerClient]:
    key, _ = create_key(tmp_path / "keys.json", name="sdk", scopes=("select", "reward"))
    with served(config, tmp_path) as url:
        yield PersonalizerClient(url, CognitiveServicesCredentials(key))


def test_every_call_of_the_client_works(client: PersonalizerClient, config: Config) -> None:
    found = client.rank(request("x", "y", "z", excluded_actions=["z"], event_id="one"))
    assert (found.event_id, len(found.ranking)) == ("one", 3)
    assert found.reward_action_id in ("x", "y")
    assert sum(one.probability for one in found.ranking) == pytest.approx(1)
    assert client.events.reward("one", 0.5) is None

    later = client.rank(request("x", "y", defer_activation=True))
    assert client.events.activate(later.event_id) is None
    assert client.events.activate(later.event_id) is None
    assert client.events.reward(later.event_id, value=1.0) is None
    assert client.rank(request("x"), raw=True).response.status_code == 201

    rewards = [one for one in events_of(config) if hasattr(one, "status")]
    assert [(one.value, one.status) for one in rewards] == [(0.5, "counted"), (1.0, "counted")]


def test_errors_come_as_the_client_reads_them(client: PersonalizerClient) -> None:
    with pytest.raises(ErrorResponseException) as raised:
        client.rank(request("x", "x"))
    assert raised.value.response.status_code == 400
    assert raised.value.error.error.code == "BadRequest"
    assert raised.value.error.error.inner_error.code == "InvalidRankRequest"
    assert raised.value.error.error.target == "actions[1].id"

    with pytest.raises(HttpOperationError) as failed:
        client.events.reward("one", 7.0)
    assert failed.value.response.status_code == 400


def test_a_wrong_key_is_rejected(client: PersonalizerClient) -> None:
    other = PersonalizerClient(client.config.endpoint, CognitiveServicesCredentials("fb_no_key"))
    with pytest.raises(ErrorResponseException) as raised:
        other.rank(request("x", "y"))
    assert raised.value.response.status_code == 401
    assert raised.value.error.error.code == "401"
