"""A service is staged as a real process: it starts, is asked, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import ServiceUnavailable
from lab.faults.stage import Caller, Running, Stage, running, set_stage, wait_for


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return set_stage(tmp_path_factory.mktemp("stage"), Synthetic("h2", 2, 20), {})


@pytest.fixture(scope="module")
def service(stage: Stage) -> Iterator[Running]:
    with running(stage) as service:
        yield service


def test_a_stage_has_a_version_to_serve(stage: Stage) -> None:
    snapshot = stage.store.current()

    assert snapshot is not None
    assert snapshot.notes["arms"] == 20


def test_a_service_decides_and_remembers(stage: Stage, service: Running) -> None:
    caller = Caller(stage.port)
    reply = caller.ask("/v1/select", {"context": [0.0, 1.0], "id": "mine"})
    caller.close()

    assert reply is not None
    assert reply.status == 200
    assert stage.decisions()["mine"].arms == reply.content["arms"]
    stage.check_log()


def test_a_service_says_that_it_is_ready(service: Running) -> None:
    assert service.wait_until(True).content == {"status": "ready", "reasons": []}
    assert service.memory()["rss"] > service.memory()["anonymous"] > 0


@pytest.mark.slow
def test_a_learner_that_has_hardly_begun_ends_with_its_service(tmp_path: Path) -> None:
    stage = set_stage(tmp_path, Synthetic("h2", 2, 20), {})

    with running(stage) as service:
        wait_for(lambda: service.learner, seconds=30.0, what="a learner")
        service.kill()

        wait_for(lambda: not service.has_left_over(), seconds=30.0, what="the learner's end")
        assert not service.has_left_over()


def test_a_caller_says_that_no_answer_came() -> None:
    caller = Caller(1)

    assert caller.ask("/ready") is None


def test_what_does_not_come_is_an_error() -> None:
    with pytest.raises(ServiceUnavailable, match="a miracle within 0 seconds"):
        wait_for(lambda: False, seconds=0.0, what="a miracle")


def test_a_service_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "fastbandit.toml").write_text("[server]\nport = 0\n")
    service = Stage(tmp_path, Synthetic("h2", 2, 20), 1).start()

    with pytest.raises(ServiceUnavailable, match="ended with status"):
        service.first_answer()
    service.end()
