"""All systems play tiny rounds; what would take too long, or too much memory, says so."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fastbandit.errors import SettingError
from lab.bakeoff.play import play
from lab.bakeoff.sets import Setting
from lab.bakeoff.systems import System
from lab.equal_latency.measure import measure
from lab.equal_latency.page import STYLES
from lab.equal_latency.sets import asked, function_of
from lab.equal_latency.systems import NAMES, SYSTEMS, check_time

NEEDS = {"VW": "vowpalwabbit", "towers": "faiss", "contextualbandits": "contextualbandits"}
QUICK = [system for system in SYSTEMS if not system.name.startswith("fastbandit")]


def named(name: str) -> System:
    return next(system for system in SYSTEMS if system.name == name)


@pytest.mark.parametrize("system", QUICK, ids=lambda system: str(system.name))
def test_a_system_plays_and_its_decisions_are_timed(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = NEEDS.get(system.name.split()[0])
    if package is not None and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    monkeypatch.setattr("lab.equal_latency.measure._SECONDS", 0.01)
    (entry,) = asked(["h2"], [50], rounds=60, batch=30)
    setting = entry.load(None, 0)
    agent = system.make(setting.environment, 0, 60)

    played = play(setting, agent, rounds=60, batch=30)
    found = measure(agent, setting)

    assert 0.0 < played.share <= 1.0
    assert found["p50_us"] > 0.0
    assert found["bytes_per_arm"] is not None


@pytest.mark.usefixtures("little_training")
def test_ours_is_timed_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.equal_latency.measure._SECONDS", 0.01)
    (entry,) = asked(["h2"], [50], rounds=60, batch=30)
    setting = entry.load(None, 0)
    agent: Any = named("fastbandit scan").make(setting.environment, 0, 60)
    play(setting, agent, rounds=60, batch=30)

    found = measure(agent, setting)

    assert found["bytes_per_arm"] == agent.freeze().bytes_per_arm


def test_every_system_has_a_style() -> None:
    assert set(STYLES) == set(NAMES)


def test_what_would_take_too_long_says_how_long() -> None:
    check_time(0.001, 5_000)

    with pytest.raises(SettingError, match=r"200.0 ms a decision make about 3,000 s"):
        check_time(0.2, 5_000)


@pytest.mark.parametrize("name", ["disjoint LinUCB", "contextualbandits", "VW SquareCB"])
def test_what_cannot_bear_many_arms_says_so_before_it_starts(name: str) -> None:
    many: Any = SimpleNamespace(size=1_000_000, reward="real")

    with pytest.raises(SettingError, match=r"1,000,000|33\.0 GB"):
        named(name).make(many, 0, 5_000)


def test_a_function_is_a_set_for_each_number_of_arms() -> None:
    sets = asked(["h1", "shop"], [10, 20], rounds=7, batch=5)

    assert [entry.name for entry in sets] == ["h1-10", "h1-20", "shop"]
    assert [function_of(entry.name) for entry in sets] == [("h1", 10), ("h1", 20), None]


def test_a_shop_shows_all_systems_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.equal_latency.sets.ITEMS", 30)
    (entry,) = asked(["shop"], [], rounds=20, batch=5)
    setting: Setting = entry.load(None, 0)

    environment = setting.environment

    assert np.asarray(environment.arms).shape[0] == environment.size == 30
    assert np.isfinite(environment.contexts(0, 20)).all()
    assert environment.ceiling(0, 20).min() > 0.0
