"""A service decides, remembers, and says whether it is ready."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from fastbandit.settings.service import Config
from fastbandit.storage.events import DecisionMade
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import ARMS, CONTEXT, Caller, begin, config_in, run


def log_of(config: Config) -> list[Any]:
    log = SqliteLog(Path(config.server.data_dir) / "events.db", is_reader=True)
    events = list(log.read())
    log.close()
    return events


def test_a_select_is_in_the_log_before_it_is_answered(config: Config) -> None:
    async def story(ask: Caller) -> None:
        answer = await ask.select()
        (made,) = log_of(config)
        assert isinstance(made, DecisionMade)
        assert (made.id, made.arms) == (answer["decision"], answer["arms"])
        assert made.context == CONTEXT

    run(config, story)


def test_an_id_sent_again_gives_the_same_answer_and_one_event(config: Config) -> None:
    async def story(ask: Caller) -> None:
        first = await ask.select(id="visit-1", k=3)
        again = await ask.select(id="visit-1", k=3)
        assert first == again
        assert len(log_of(config)) == 1

    run(config, story)


def test_an_id_of_another_request_is_rejected(config: Config) -> None:
    async def story(ask: Caller) -> None:
        await ask.select(id="visit-1")
        reply = await ask("POST", "/v1/select", {"context": [0.0, 0.0, 0.0], "id": "visit-1"})
        assert (reply.status, reply.body["field"]) == (409, "id")

    run(config, story)


def test_a_restarted_service_still_knows_an_id(config: Config) -> None:
    async def story(ask: Caller) -> Any:
        return await ask.select(id="visit-1")

    assert run(config, story) == run(config, story)


def test_a_service_without_a_snapshot_says_why_it_is_not_ready(tmp_path: Path) -> None:
    async def story(ask: Caller) -> None:
        assert (await ask("GET", "/live")).status == 200
        reply = await ask("GET", "/ready")
        assert (reply.status, reply.body["reasons"][0]["name"]) == (503, "no snapshot")
        rejected = await ask("POST", "/v1/select", {"context": CONTEXT})
        assert (rejected.status, rejected.headers["retry-after"]) == (503, "1")

    run(config_in(tmp_path), story)


def test_arms_may_come_before_there_is_any_snapshot(tmp_path: Path) -> None:
    async def story(ask: Caller) -> None:
        put = await ask("PUT", "/v1/arms", {"arms": [{"id": "a", "features": [1.0, 2.0]}]})
        assert (put.status, put.body["arms"]) == (200, 1)
        wrong = await ask("PUT", "/v1/arms", {"arms": [{"id": "b", "features": [1.0]}]})
        assert wrong.status == 422

    run(config_in(tmp_path), story)


def test_a_log_that_cannot_be_written_to_is_never_acknowledged_and_recovers(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastbandit.errors import LogError

    async def story(ask: Caller) -> None:
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


# -- what it says of itself


def test_a_ready_service_names_its_version_and_arms(config: Config) -> None:
    async def story(ask: Caller) -> None:
        status = ask.service.status()
        assert (status.ready, status.reasons, status.problems) == (True, [], [])
        assert (status.version, status.arms, status.arms_not_indexed) == (0, ARMS, 0)
        assert (status.decides, status.baseline) == ("bandit", "")

    run(config, story)


def test_an_arm_that_was_just_added_is_not_indexed_yet(config: Config) -> None:
    async def story(ask: Caller) -> None:
        arm = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 1, "colour": "red"}}
        await ask("PUT", "/v1/arms", {"arms": [arm]})
        status = (await ask("GET", "/v1/status")).body
        assert (status["arms"], status["arms_not_indexed"]) == (ARMS + 1, 1)

    run(config, story)


def test_three_versions_refused_in_a_row_are_a_problem(tmp_path: Path) -> None:
    async def story(ask: Caller) -> None:
        store = ask.service.follower.store
        for version in (1, 2):
            store.refuse(version, {"reason": "It is worse than a constant."})
        assert ask.service.problems() == []
        store.refuse(3, {"reason": "It is worse than popularity."})

        status = ask.service.status()
        (problem,) = status.problems
        assert (problem.name, status.refused_in_a_row) == ("refused", 3)
        assert "3 versions" in problem.detail
        assert "worse than popularity" in problem.detail
        assert "fastbandit_refused_in_a_row 3.0" in str((await ask("GET", "/metrics")).body)

    run(begin(tmp_path), story)


@pytest.mark.parametrize(
    ("late", "took", "problems"),
    [(20.0, 1.0, []), (40.0, 1.0, ["learner behind"]), (40.0, 90.0, [])],
)
def test_a_version_that_is_due_for_long_is_a_problem(
    config: Config, late: float, took: float, problems: list[str]
) -> None:
    async def story(ask: Caller) -> None:
        measured_at = time.monotonic() - late
        report = {"state": "training", "seconds": took, "lag_seconds": 1.0}
        report["measured_at"] = measured_at
        (Path(config.server.data_dir) / "learner.json").write_text(json.dumps(report))

        status = ask.service.status()
        assert [one.name for one in status.problems] == problems
        assert status.learner["lag_seconds"] >= late
        said = str((await ask("GET", "/metrics")).body)
        assert "fastbandit_learner_lag_seconds" in said
        assert f"fastbandit_learner_behind {float(len(problems))}" in said

    run(config, story)


def test_the_status_has_the_checks_of_the_version_in_service(config: Config) -> None:
    async def story(ask: Caller) -> None:
        assert ask.service.status().checks == {}  # version 0 was not checked

    run(config, story)


def test_nobody_else_reads_what_a_service_writes(config: Config, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    async def story(ask: Caller) -> None:
        await ask.select()
        found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("events.db*")}
        assert found["events.db"] == found["events.db-wal"] == 0o600
        assert tmp_path.stat().st_mode & 0o777 == 0o700

    run(config, story)
