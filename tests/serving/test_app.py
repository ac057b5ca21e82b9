"""What the service answers: selects, rewards, arms, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.settings.service import Config
from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import ARMS, CONTEXT, Asker, config_in, run


def log_of(config: Config) -> list[Any]:
    log = SqliteLog(Path(config.server.data_dir) / "events.db", is_reader=True)
    events = list(log.read())
    log.close()
    return events


# -- select


def test_a_select_is_in_the_log_before_it_is_answered(config: Config) -> None:
    async def story(ask: Asker) -> None:
        answer = await ask.select()
        (made,) = log_of(config)
        assert isinstance(made, DecisionMade)
        assert (made.id, made.arms) == (answer["decision"], answer["arms"])
        assert made.context == CONTEXT

    run(config, story)


def test_before_anything_is_learned_every_arm_is_equally_likely(config: Config) -> None:
    async def story(ask: Asker) -> None:
        answers = [await ask.select(propensity=True) for _ in range(60)]
        assert [one["propensities"][0] for one in answers] == pytest.approx([1 / ARMS] * 60)
        assert len({answer["arms"][0] for answer in answers}) > ARMS / 2

    run(config, story)


def test_an_id_sent_again_gives_the_same_answer_and_one_event(config: Config) -> None:
    async def story(ask: Asker) -> None:
        first = await ask.select(id="visit-1", k=3)
        again = await ask.select(id="visit-1", k=3)
        assert first == again
        assert len(log_of(config)) == 1

    run(config, story)


def test_an_id_of_another_request_is_refused(config: Config) -> None:
    async def story(ask: Asker) -> None:
        await ask.select(id="visit-1")
        reply = await ask("POST", "/v1/select", {"context": [0.0, 0.0, 0.0], "id": "visit-1"})
        assert (reply.status, reply.body["field"]) == (409, "id")

    run(config, story)


def test_a_restarted_service_still_knows_an_id(config: Config) -> None:
    async def story(ask: Asker) -> Any:
        return await ask.select(id="visit-1")

    assert run(config, story) == run(config, story)


def test_a_batch_gives_one_decision_for_each_context(config: Config) -> None:
    async def story(ask: Asker) -> None:
        told = {"contexts": [CONTEXT] * 20, "ids": [f"visit-{n}" for n in range(20)], "k": 2}
        reply = await ask("POST", "/v1/select", told)
        assert [one["decision"] for one in reply.body["decisions"]] == told["ids"]
        assert {len(one["arms"]) for one in reply.body["decisions"]} == {2}

    run(config, story)


def test_the_same_id_decides_alike_alone_and_in_a_batch(config: Config, tmp_path: Path) -> None:
    async def alone(ask: Asker) -> Any:
        return (await ask.select(id="visit-1"))["arms"]

    async def batch(ask: Asker) -> Any:
        told = {"contexts": [CONTEXT], "ids": ["visit-1"]}
        return (await ask("POST", "/v1/select", told)).body["decisions"][0]["arms"]

    first = run(config, alone)
    (tmp_path / "events.db").unlink()
    assert run(config, batch) == first


@pytest.mark.parametrize(
    ("eligible", "may_be"),
    [
        (["arm-3"], {"arm-3"}),
        ({"price": {"<": 2}}, {"arm-0", "arm-1"}),
        ({"colour": "red", "price": {">=": 9}}, {"arm-9", "arm-11"}),
    ],
)
def test_only_eligible_arms_are_chosen(config: Config, eligible: Any, may_be: set[str]) -> None:
    async def story(ask: Asker) -> None:
        chosen = {(await ask.select(eligible=eligible))["arms"][0] for _ in range(10)}
        assert chosen <= may_be

    run(config, story)


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({}, "context"),
        ({"context": CONTEXT, "contexts": [CONTEXT]}, "context"),
        ({"context": [1.0]}, "context"),
        ({"contexts": [CONTEXT, [1.0]]}, "contexts[1]"),
        ({"context": {"a": 1.0}}, "context"),
        ({"context": CONTEXT, "k": 0}, "k"),
        ({"context": CONTEXT, "k": 2, "propensity": True}, "k"),
        ({"context": CONTEXT, "eligible": ["nobody"]}, "eligible"),
        ({"context": CONTEXT, "eligible": {"prise": 1}}, "eligible"),
        ({"context": CONTEXT, "eligible": {"price": {"<": "x"}}}, "eligible"),
        ({"context": CONTEXT, "eligible": {"price": {"<": -1}}}, "eligible"),
        ({"context": CONTEXT, "eligible": {"a": {"b": {"c": {"d": {"e": 1}}}}}}, "eligible"),
        ({"context": CONTEXT, "id": "a b"}, "id"),
        ({"context": CONTEXT, "ids": ["a", "b"]}, "ids"),
        ({"contexts": [CONTEXT, CONTEXT], "ids": ["a", "a"]}, "ids"),
        ({"contexts": [CONTEXT], "id": "a"}, "id"),
        ({"context": CONTEXT, "colour": "red"}, "colour"),
        ({"context": [1.0, 2.0, 1e39]}, "context"),
    ],
)
def test_a_wrong_select_names_the_field_and_the_fix(config: Config, told: Any, field: str) -> None:
    async def story(ask: Asker) -> None:
        reply = await ask("POST", "/v1/select", told)
        assert (reply.status, reply.body["field"]) == (422, field), reply
        assert reply.body["fix"]
        assert reply.headers["content-type"] == "application/problem+json"

    run(config, story)
    assert log_of(config) == []


@pytest.mark.parametrize("raw", [b"", b"{", b'{"k": NaN}', b'{"context": [Infinity]}', b"\xff\xfe"])
def test_a_body_that_is_no_json_is_refused(config: Config, raw: bytes) -> None:
    async def story(ask: Asker) -> None:
        reply = await ask("POST", "/v1/select", raw=raw)
        assert (reply.status, reply.body["field"]) == (400, "body")

    run(config, story)


def test_nesting_without_end_is_refused(config: Config) -> None:
    async def story(ask: Asker) -> None:
        deep = b'{"context": [0, 0, 0], "eligible": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001
        assert (await ask("POST", "/v1/select", raw=deep)).status in (400, 422)

    run(config, story)


def test_a_body_over_the_limit_is_refused_before_it_is_read_whole(
    first_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "snapshots").symlink_to(first_folder / "snapshots")

    async def story(ask: Asker) -> None:
        reply = await ask("POST", "/v1/select", raw=b" " * 500, pieces=5)
        assert reply.status == 413

    run(config_in(tmp_path, server__max_body_bytes=100), story)


def test_named_features_may_come_in_any_order(first_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshots").symlink_to(first_folder / "snapshots")
    config = config_in(tmp_path, context__features=0, context__names=("x", "y", "z"))

    async def story(ask: Asker) -> None:
        told = {"context": {"z": 3.0, "x": 1.0, "y": 2.0}}
        assert (await ask("POST", "/v1/select", told)).status == 200
        missing = await ask("POST", "/v1/select", {"context": {"x": 1.0, "y": 2.0}})
        assert missing.body["field"] == "context.z"

    run(config, story)
    assert log_of(config)[0].context == [1.0, 2.0, 3.0]


# -- rewards


def test_each_kind_of_reward_has_its_own_answer_and_all_are_kept(config: Config) -> None:
    async def story(ask: Asker) -> None:
        await ask.select(id="visit-1", k=2)
        sent = [("visit-1", 1.0), ("visit-1", 1.0), ("visit-1", 0.0), ("nobody", 1.0)]
        replies = [
            await ask("POST", "/v1/reward", {"decision": id, "value": value}) for id, value in sent
        ]
        told = [(reply.status, reply.body["status"]) for reply in replies]
        assert told == [
            (200, "counted"),
            (200, "duplicate"),
            (409, "conflicting"),
            (404, "unknown"),
        ]
        assert sum(isinstance(event, RewardCame) for event in log_of(config)) == 4

    run(config, story)


def test_a_reward_after_the_wait_is_late(first_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshots").symlink_to(first_folder / "snapshots")

    async def story(ask: Asker) -> None:
        await ask.select(id="visit-1")
        reply = await ask("POST", "/v1/reward", {"decision": "visit-1", "value": 1})
        assert (reply.status, reply.body["status"]) == (202, "late")

    run(config_in(tmp_path, reward__wait_seconds=1e-6), story)


def test_many_rewards_are_answered_in_their_order(config: Config) -> None:
    async def story(ask: Asker) -> None:
        answer = await ask.select(id="visit-1", k=2)
        rewards = [
            {"decision": "visit-1", "value": 1, "arm": answer["arms"][1]},
            {"decision": "nobody", "value": 1},
            {"decision": "visit-1", "value": 0, "arm": "nothing"},
        ]
        reply = await ask("POST", "/v1/reward", {"rewards": rewards})
        told = [one["status"] for one in reply.body["rewards"]]
        assert told == ["counted", "unknown", "unknown arm"]

    run(config, story)


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({}, "rewards"),
        ({"decision": "a"}, "rewards"),
        ({"decision": "a", "value": 0.5}, "value"),
        ({"decision": "a", "value": True}, "value"),
        ({"decision": "a", "value": None}, "value"),
        ({"rewards": [{"decision": "a", "value": 2}]}, "rewards[0].value"),
        ({"rewards": []}, "rewards"),
        ({"decision": "a", "value": 1, "rewards": [{"decision": "a", "value": 1}]}, "rewards"),
    ],
)
def test_a_wrong_reward_names_the_field(config: Config, told: Any, field: str) -> None:
    async def story(ask: Asker) -> None:
        reply = await ask("POST", "/v1/reward", told)
        assert (reply.status, reply.body["field"]) == (422, field), reply

    run(config, story)
    assert log_of(config) == []


# -- arms


def test_an_arm_that_is_put_can_be_chosen_and_one_that_is_deleted_cannot(config: Config) -> None:
    arm = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 99, "colour": "green"}}

    async def story(ask: Asker) -> None:
        put = (await ask("PUT", "/v1/arms", {"arms": [arm]})).body
        assert (put["added"], put["arms"]) == (1, ARMS + 1)
        assert (await ask.select(eligible={"price": {">": 50}}))["arms"] == ["new"]
        gone = (await ask("DELETE", "/v1/arms", {"ids": ["new", "nobody"]})).body
        assert (gone["removed"], gone["unknown"], gone["arms"]) == (1, ["nobody"], ARMS)
        reply = await ask("POST", "/v1/select", {"context": CONTEXT, "eligible": ["new"]})
        assert reply.status == 422

    run(config, story)


@pytest.fixture
def plain(tmp_path: Path) -> Config:
    """A service whose arms have no columns."""
    arms = tmp_path / "arms.npy"
    np.save(arms, np.random.default_rng(0).normal(size=(ARMS, 2)))
    config = config_in(tmp_path, arms__file=str(arms))
    publish_initial_version(config, SnapshotStore(tmp_path / "snapshots"))
    return config


def test_without_columns_a_predicate_names_the_setting(plain: Config) -> None:
    async def story(ask: Asker) -> None:
        told = {"context": CONTEXT, "eligible": {"price": {"<=": 10}}}
        reply = await ask("POST", "/v1/select", told)
        assert (reply.status, reply.body["field"]) == (422, "eligible")
        assert "arms.columns" in reply.body["fix"]
        arm = {"id": "new", "features": [0.1, 0.2], "columns": {"price": 9}}
        reply = await ask("PUT", "/v1/arms", {"arms": [arm]})
        assert reply.status == 422
        assert "arms.columns" in reply.body["fix"]

    run(plain, story)


def test_a_change_that_changes_nothing_leaves_no_trace(config: Config) -> None:
    arm = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 9, "colour": "red"}}

    async def story(ask: Asker) -> None:
        first = (await ask("PUT", "/v1/arms", {"arms": [arm]})).body
        again = (await ask("PUT", "/v1/arms", {"arms": [arm]})).body
        gone = (await ask("DELETE", "/v1/arms", {"ids": ["nobody"]})).body
        assert (gone["removed"], gone["unknown"]) == (0, ["nobody"])
        assert first["catalogue"] == again["catalogue"] == gone["catalogue"]

    run(config, story)
    assert len(log_of(config)) == 1


def test_the_arms_are_the_same_after_a_restart(config: Config) -> None:
    arm = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 99, "colour": "green"}}

    async def change(ask: Asker) -> Any:
        await ask("PUT", "/v1/arms", {"arms": [arm]})
        await ask("DELETE", "/v1/arms", {"ids": ["arm-0"]})
        return (await ask("GET", "/v1/status")).body["catalogue"]

    async def look(ask: Asker) -> Any:
        assert (await ask.select(eligible=["new"]))["arms"] == ["new"]
        gone = await ask("POST", "/v1/select", {"context": CONTEXT, "eligible": ["arm-0"]})
        assert gone.status == 422
        return (await ask("GET", "/v1/status")).body["catalogue"]

    assert run(config, change) == run(config, look)


def test_putting_the_same_arm_again_changes_nothing(config: Config) -> None:
    arm = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 9, "colour": "red"}}
    other = {**arm, "features": [5.0, 5.0, 5.0]}
    dearer = {**other, "columns": {"price": 10, "colour": "red"}}

    async def story(ask: Asker) -> None:
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
def test_a_wrong_arm_is_refused_and_leaves_no_trace(config: Config, arms: Any) -> None:
    async def story(ask: Asker) -> None:
        reply = await ask("PUT", "/v1/arms", {"arms": arms})
        assert reply.status == 422, reply
        assert (await ask("GET", "/v1/status")).body["arms"] == ARMS

    run(config, story)
    assert log_of(config) == []


def test_the_last_arms_cannot_be_deleted(config: Config) -> None:
    async def story(ask: Asker) -> None:
        reply = await ask("DELETE", "/v1/arms", {"ids": [f"arm-{n}" for n in range(ARMS)]})
        assert (reply.status, reply.body["field"]) == (422, "ids")

    run(config, story)


# -- what it is now


def test_a_service_without_a_snapshot_says_why_it_is_not_ready(tmp_path: Path) -> None:
    async def story(ask: Asker) -> None:
        assert (await ask("GET", "/live")).status == 200
        reply = await ask("GET", "/ready")
        assert (reply.status, reply.body["reasons"][0]["name"]) == (503, "no snapshot")
        refused = await ask("POST", "/v1/select", {"context": CONTEXT})
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")

    run(config_in(tmp_path), story)


def test_arms_may_come_before_there_is_any_snapshot(tmp_path: Path) -> None:
    async def story(ask: Asker) -> None:
        put = await ask("PUT", "/v1/arms", {"arms": [{"id": "a", "features": [1.0, 2.0]}]})
        assert (put.status, put.body["arms"]) == (200, 1)
        wrong = await ask("PUT", "/v1/arms", {"arms": [{"id": "b", "features": [1.0]}]})
        assert wrong.status == 422

    run(config_in(tmp_path), story)


def test_metrics_count_what_was_answered(config: Config) -> None:
    async def story(ask: Asker) -> None:
        await ask.select(id="visit-1")
        await ask("POST", "/v1/reward", {"decision": "visit-1", "value": 1})
        text = (await ask("GET", "/metrics")).body.decode()
        assert "fastbandit_decisions_total 1.0" in text
        assert 'fastbandit_rewards_total{status="counted"} 1.0' in text
        assert "fastbandit_select_seconds_count 1.0" in text

    run(config, story)


def test_an_unknown_path_and_a_wrong_method_say_what_there_is(config: Config) -> None:
    async def story(ask: Asker) -> None:
        assert (await ask("GET", "/v1/selekt")).status == 404
        wrong = await ask("GET", "/v1/select")
        assert (wrong.status, wrong.headers["allow"]) == (405, "POST")

    run(config, story)


def test_a_log_that_cannot_be_written_to_is_never_acknowledged_and_recovers(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastbandit.errors import LogError

    async def story(ask: Asker) -> None:
        await ask.select()
        with monkeypatch.context() as broken:

            def full(self: SqliteLog, events: Any) -> Any:
                raise LogError("The event log needs room: the disk is full. Make room.")

            broken.setattr(SqliteLog, "append", full)
            reply = await ask("POST", "/v1/select", {"context": CONTEXT})
            assert (reply.status, reply.body["title"]) == (503, "not written")
            assert (await ask("GET", "/ready")).body["reasons"][0]["name"] == "log"
        await ask.select()
        assert (await ask("GET", "/ready")).status == 200

    run(config, story)
    assert len(log_of(config)) == 2


def test_the_root_leads_to_the_console_where_there_is_one(config: Config, tmp_path: Path) -> None:
    async def story(ask: Asker) -> Any:
        return await ask("GET", "/")

    reply = run(config, story)
    assert (reply.status, reply.headers["location"]) == (307, "/console/")
    assert run(config_in(tmp_path / "other", server__console=False), story).status == 404
