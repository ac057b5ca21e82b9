"""Who decides in shadow mode, as a file says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fastbandit.serving.promotion import (
    DECIDES_FILE,
    Promotion,
    promote_command,
    read_promotion,
    store_promotion,
    write_promotion,
)
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config
from tests.serving.little_service import CONTEXT, Caller, config_in, run

ARM_3 = {"arm": "arm-3", "propensity": 0.25}


@pytest.fixture
def named(config: Config) -> Config:
    """A service where the caller names the arm of the baseline."""
    return config_in(Path(config.server.data_dir), shadow__baseline="request")


@pytest.fixture
def drawn(config: Config) -> Config:
    """A service where the baseline takes any arm."""
    return config_in(Path(config.server.data_dir), shadow__baseline="random")


def decide(config: Config, who: Any) -> None:
    write_promotion(Path(config.server.data_dir), who, version=0)


async def followed(ask: Caller, who: str) -> None:
    """Wait until the service has seen who decides."""
    for _ in range(100):
        if (await ask("GET", "/v1/status")).body["decides"] == who:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"the service did not notice that the {who} decides")


def test_a_promoted_bandit_decides_and_the_comparison_goes_on(named: Config) -> None:
    async def story(ask: Caller) -> None:
        decide(named, "bandit")
        await followed(ask, "bandit")
        answer = await ask.select(baseline=ARM_3, eligible=["arm-3", "arm-5"])
        assert (answer["decided_by"], answer["other"]) == ("bandit", "arm-3")
        plain = await ask.select(k=2)
        assert (plain["decided_by"], plain["other"], len(plain["arms"])) == ("bandit", None, 2)
        decide(named, "baseline")
        await followed(ask, "baseline")
        assert (await ask.select(baseline=ARM_3))["arms"] == ["arm-3"]

    run(named, story)


def test_a_restart_keeps_who_decides(drawn: Config) -> None:
    async def story(ask: Caller) -> Any:
        return (await ask.select())["decided_by"]

    assert run(drawn, story) == "baseline"
    decide(drawn, "bandit")
    assert run(drawn, story) == "bandit"


def test_a_damaged_file_changes_nothing_and_is_reported(drawn: Config) -> None:
    async def story(ask: Caller) -> None:
        (Path(drawn.server.data_dir) / DECIDES_FILE).write_text('{"decides": "nobody"}')
        for _ in range(100):
            status = (await ask("GET", "/v1/status")).body
            if status["problems"]:
                break
            await asyncio.sleep(0.05)
        assert (status["decides"], status["problems"][0]["name"]) == ("bandit", "promotion")

    decide(drawn, "bandit")
    run(drawn, story)


def test_what_is_reported_again_is_not_written_again(tmp_path: Path) -> None:
    told = Promotion("bandit", 1700.5, 3)
    store_promotion(tmp_path, told)
    before = (tmp_path / DECIDES_FILE).stat()

    store_promotion(tmp_path, told)

    assert (tmp_path / DECIDES_FILE).stat() == before
    assert read_promotion(tmp_path) == told


def test_a_promotion_amid_traffic_never_mixes_answers(named: Config) -> None:
    """Eligible is an arm that the baseline names and another: who decided must fit the arm."""

    async def story(ask: Caller) -> None:
        told = {"eligible": ["arm-3", "arm-5"], "baseline": ARM_3}
        batch = {"contexts": [CONTEXT] * 9, "eligible": ["arm-3", "arm-5"]}
        seen = set()
        for turn in range(6):
            decide(named, ("bandit", "baseline")[turn % 2])
            for _ in range(8):
                many = await ask("POST", "/v1/select", {**batch, "baselines": [ARM_3] * 9})
                answers = [await ask.select(**told), *many.body["decisions"]]
                assert len({one["decided_by"] for one in answers[1:]}) == 1
                for one in answers:
                    seen.add(one["decided_by"])
                    is_baseline = one["decided_by"] == "baseline"
                    assert (one["arms"] if is_baseline else [one["other"]]) == ["arm-3"]
                    assert one["propensities"] == ([0.25] if is_baseline else None)
                await asyncio.sleep(0.05)
        assert seen == {"bandit", "baseline"}

    run(named, story)


def test_the_command_to_promote_has_the_options_that_serve_was_given(tmp_path: Path) -> None:
    path = tmp_path / "my shop.toml"
    path.write_text("[context]\nfeatures = 2\n")

    line = promote_command(read_config(path, environ={}), "bandit")

    assert line == f"fastbandit promote --back --config '{path}'"
    assert promote_command(read_config(None, environ={}), "baseline") == "fastbandit promote"
