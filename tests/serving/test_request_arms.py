"""A select brings its own arms: they are scored, logged and learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.offers import offer_name
from fastbandit.bandit import Bandit
from fastbandit.learning.learner import Learner
from fastbandit.learning.service_data import ServiceData
from fastbandit.learning.training_history import TrainingHistory
from fastbandit.settings.service import Config
from fastbandit.storage.events import Arm
from fastbandit.storage.snapshot_store import SnapshotStore
from tests.serving.little_named import CONTEXT, ask_for, events_of
from tests.serving.little_service import CONTEXT as NUMBERS
from tests.serving.little_service import Caller, run

NEW = {"title": "Something else", "price": 12.5, "genre": "rock", "since": "2024-03-01"}
OFFERED: list[dict[str, Any]] = [{"id": "z", "features": NEW}, {"id": "b"}]


def test_an_arm_that_the_catalogue_does_not_have_is_chosen(named: Config) -> None:
    reply = ask_for(named, context=CONTEXT, arms=OFFERED[:1])

    assert reply.status == 200, reply.body
    assert reply.body["arms"] == ["z"]


def test_only_the_arms_of_the_request_are_chosen(named: Config) -> None:
    reply = ask_for(named, context=CONTEXT, arms=OFFERED, k=4)

    assert sorted(reply.body["arms"]) == ["b", "z"]


def test_the_log_holds_them_as_they_came(named: Config) -> None:
    ask_for(named, context=CONTEXT, arms=OFFERED)

    (made,) = events_of(named)
    assert made.offered == [Arm("z", NEW)]
    assert made.eligible == ["z", "b"]


def test_an_arm_with_the_features_of_the_catalogue_is_that_of_the_catalogue(
    named: Config,
) -> None:
    known = {"title": "A quiet evening", "price": 10, "genre": "jazz", "since": "2024-01-03"}
    dearer = known | {"price": 99}

    ask_for(named, context=CONTEXT, arms=[{"id": "a", "features": known}])
    ask_for(named, context=CONTEXT, arms=[{"id": "a", "features": dearer}])

    assert [made.offered for made in events_of(named)] == [None, [Arm("a", dearer)]]


def test_a_retry_gets_the_same_answer_and_other_arms_are_a_conflict(
    named: Config,
) -> None:
    async def story(ask: Caller) -> None:
        body = {"context": CONTEXT, "id": "one", "arms": OFFERED}
        first = await ask("POST", "/v1/select", body)
        again = await ask("POST", "/v1/select", body)
        assert (again.status, again.body) == (200, first.body)
        other = [{"id": "z", "features": NEW | {"price": 1}}, {"id": "b"}]
        refused = await ask("POST", "/v1/select", body | {"arms": other})
        assert refused.status == 409

    run(named, story)


@pytest.mark.parametrize(
    ("arms", "field", "said"),
    [
        ([{"id": "z"}], "arms", "'z' without"),
        ([{"id": "z", "features": [1.0]}], "arms", "by their names"),
        ([{"id": "b"}, {"id": "z", "features": NEW | {"price": "much"}}],
         "arms[1].features.price", "price"),
        ([{"id": "z", "features": {"price": 3}}], "arms[0].features.title", "title"),
        ([{"id": "b"}, {"id": "b"}], "arms[1].id", "of its own"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(
    named: Config,
    arms: Any,
    field: str,
    said: str,
) -> None:
    reply = ask_for(named, context=CONTEXT, arms=arms)

    assert reply.status == 422
    assert (reply.body["field"], said in reply.body["detail"]) == (field, True), reply.body
    assert events_of(named) == []


def test_arms_and_eligible_exclude_each_other(named: Config) -> None:
    reply = ask_for(named, context=CONTEXT, arms=OFFERED, eligible=["a"])

    assert (reply.status, reply.body["field"]) == (422, "eligible")


def test_a_request_cannot_have_the_log_hold_without_bound(named: Config) -> None:
    arms = [{"id": f"n{n}", "features": NEW} for n in range(600)]

    reply = ask_for(named, contexts=[CONTEXT] * 20, arms=arms)

    assert (reply.status, reply.body["field"]) == (422, "arms")


def test_propensities_are_among_the_arms_of_the_request(named: Config) -> None:
    reply = ask_for(named, context=CONTEXT, arms=OFFERED, propensity=True)

    assert reply.body["propensities"] == [pytest.approx(0.5)]


def learned_from(config: Config) -> Bandit:
    """Let a service decide among arms of the requests, and return what was learned."""

    async def story(ask: Caller) -> None:
        for number in range(24):
            arms = [{"id": "z", "features": NEW}, {"id": f"y{number % 2}", "features": NEW}]
            reply = await ask("POST", "/v1/select", {"context": CONTEXT, "arms": arms, "k": 2})
            decision = reply.body["decision"]
            for arm in reply.body["arms"]:
                reward = {"decision": decision, "arm": arm, "value": float(arm == "z")}
                await ask("POST", "/v1/reward", reward)

    run(config, story)
    assert Learner(config).step().did == "published"
    current = SnapshotStore(Path(config.server.data_dir) / "snapshots").current()
    assert current is not None
    history = TrainingHistory(ServiceData(config))
    return history.of(Bandit.load(current.bandit), current)[0]


def test_what_came_of_them_is_learned_and_they_stay_out_of_the_catalogue(
    named: Config,
    tmp_path: Path,
) -> None:
    (tmp_path / "snapshots").unlink()
    Learner(named).step()

    bandit = learned_from(named)

    arms = bandit.policy.arms
    assert isinstance(arms, Catalogue)
    assert len(bandit) == 4
    assert {offer_name(id, NEW) for id in ("z", "y0", "y1")} <= set(arms.table)
    assert bandit.history is not None
    assert bandit.history.rows is not None
    assert {*bandit.history.rows.tolist()} == {4, 5, 6}


def test_what_was_learned_of_them_decides_the_next_request(
    named: Config,
    tmp_path: Path,
) -> None:
    (tmp_path / "snapshots").unlink()
    Learner(named).step()
    learned_from(named)
    both = [{"id": "y0", "features": NEW}, {"id": "z", "features": NEW}]

    async def story(ask: Caller) -> None:
        reply = await ask(
            "POST", "/v1/select", {"context": CONTEXT, "arms": both, "explore": False}
        )
        assert reply.body["arms"] == ["z"]
        path = f"/v1/decisions/{reply.body['decision']}/explanation"
        explained = await ask("GET", path)
        assert explained.status == 200, explained.body
        assert explained.body["runner_up"] == "y0"
        total = sum(explained.body["contributions"].values())
        assert total == pytest.approx(explained.body["score"], abs=1e-6)

    run(named, story)


def test_arms_without_names_bring_numbers(config: Config) -> None:
    async def story(ask: Caller) -> None:
        reply = await ask(
            "POST",
            "/v1/select",
            {"context": NUMBERS, "arms": [{"id": "new", "features": [1, 2, 3]}]},
        )
        assert (reply.status, reply.body["arms"]) == (200, ["new"]), reply.body
        short = await ask(
            "POST", "/v1/select", {"context": NUMBERS, "arms": [{"id": "new", "features": [1]}]}
        )
        assert (short.status, short.body["field"]) == (422, "arms")

    run(config, story)
