"""What the service says of itself."""

from __future__ import annotations

from fastbandit.serving.status import status_of
from fastbandit.settings.service import Config
from tests.serving.little_service import ARMS, Caller, run


def test_a_ready_service_names_its_version_and_arms(config: Config) -> None:
    async def story(ask: Caller) -> None:
        status = status_of(ask.service)
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
