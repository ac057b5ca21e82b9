"""Actions that came before are told by their bytes: what is decided and logged stays the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastbandit.features.mapping_columns import merged
from fastbandit.serving.personalizer.rank import Rank, read_rank, to_select
from fastbandit.serving.service import Service
from fastbandit.settings.service import Config
from fastbandit.storage.events import Arm, DecisionMade
from fastbandit.storage.log_input import text_of
from tests.serving.little_named import events_of
from tests.serving.personalizer.little_personalizer import CONTEXT, Client, action, rank_of, tell

BARE = {"id": "bare"}


def read(service: Service, body: bytes) -> Rank:
    assert service.decider.serving is not None
    return read_rank(body, service.decider.serving.bandit.parts[2].offers)


def decide(service: Service, rank: Rank) -> tuple[DecisionMade, dict[Any, float]]:
    return service.decider.rank(to_select(rank, service.decider), draws=20)


def test_a_rank_is_decided_as_if_its_actions_had_never_come(config: Config) -> None:
    body = json.dumps(rank_of("x", "y", "z", eventId="one", excludedActions=["y"])).encode()

    async def story(client: Client) -> None:
        ranks, answers = [], []
        for _ in range(2):
            ranks.append(read(client.service, body))
            answers.append(decide(client.service, ranks[-1]))
        came = [json.dumps(action(id)).encode() for id in ("x", "y", "z")]
        assert ranks[0].known == [b"", b"", b""]
        assert ranks[1].known == [came[0], b"", came[2]]  # y could not be chosen
        assert [shares for _, shares in answers] == [answers[0][1]] * 2
        assert [text_of(made) for made, _ in answers] == [text_of(answers[0][0])] * 2

    tell(config, story)


def test_known_and_new_actions_come_together(config: Config) -> None:
    cheap = action("y", price=1.0)

    async def story(client: Client) -> None:
        await client.rank("x", "y")
        told = rank_of("x", "z") | {"eventId": "mixed"}
        told["actions"].insert(1, cheap)
        assert (await client("POST", "/rank", told)).status == 201

    tell(config, story)
    _, mixed = events_of(config)
    assert mixed.offered == [
        Arm(one["id"], merged(one["features"])) for one in (action("x"), cheap, action("z"))
    ]


def test_what_was_learned_of_by_another_version_is_read_again(config: Config) -> None:
    body = json.dumps(rank_of("x", "y", eventId="one")).encode()

    async def story(client: Client) -> None:
        first = decide(client.service, read(client.service, body))
        rank = read(client.service, body)
        serving = client.service.decider.serving
        assert serving is not None
        vars(serving.bandit.parts[2])["offers"] = {}  # as of a version that is loaded now
        again = decide(client.service, rank)
        assert (text_of(again[0]), again[1]) == (text_of(first[0]), first[1])

    tell(config, story)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"x"', b'"x", "id": "x"', "stands there twice"),
        (b'"features"', b'"features": [], "features"', "stands there twice"),
        (b'"x"', b'"x\\u0001"', ""),
        (b'"genre": "rock"', b'"genre": "rock", "genre": "rock"', "stands there twice"),
        (b'[{"title"', b'[3, {"title"', ""),
    ],
)
def test_what_is_wrong_with_an_action_that_came_before_is_said(
    config: Config, old: bytes, new: bytes, said: str
) -> None:
    body = json.dumps(rank_of("x", "y")).encode()
    wrong = body.replace(old, new, 1)

    async def story(client: Client) -> None:
        before = await client("POST", "/rank", raw=wrong)
        assert (await client("POST", "/rank", raw=body)).status == 201
        after = await client("POST", "/rank", raw=wrong)
        assert wrong != body
        assert before.status == 400
        assert (after.status, after.body) == (400, before.body)
        assert said in after.body["error"]["message"]

    tell(config, story)
    assert len(events_of(config)) == 1


def test_an_object_that_came_to_select_is_no_list_of_a_rank(config: Config) -> None:
    features, context = merged(action("x")["features"]), merged(CONTEXT)

    async def story(client: Client) -> None:
        told = {"context": context, "arms": [{"id": "x", "features": features}]}
        assert (await client.ask("POST", "/v1/select", told)).status == 200
        told = {"contextFeatures": [context], "actions": [{"id": "x", "features": features}]}
        assert (await client("POST", "/rank", told)).status == 400
        told["actions"] = [["x", features]]
        assert (await client("POST", "/rank", told)).status == 400

    tell(config, story)


def test_an_action_may_have_no_features() -> None:
    rank = read_rank(
        json.dumps({"actions": [BARE, {**BARE, "id": "y", "features": None}]}).encode(), {}
    )

    assert [arm.features for arm in rank.arms] == [{}, {}]
