"""The engine on Ray through the laws of fastbandit/testing/engines.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastbandit.cluster.engine import Engine, make_engine
from fastbandit.cluster.ray_engine import RayEngine
from fastbandit.errors import SettingError
from fastbandit.testing.engines import LAWS

pytest.importorskip("ray")


@pytest.fixture(scope="session")  # a Ray that runs is used: there is one for all files
def engine() -> Iterator[Engine]:
    engine = make_engine("ray", workers=2)
    yield engine
    engine.close()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_an_engine_on_ray_keeps_the_law(
    law: Callable[[Engine, Path], None], engine: Engine, tmp_path: Path
) -> None:
    law(engine, tmp_path)


def test_a_ray_that_runs_is_used_and_left_running(engine: Engine) -> None:
    import ray

    second = RayEngine(workers=9)
    second.close()

    assert second.workers == 2
    assert ray.is_initialized()


def test_a_cluster_that_does_not_answer_is_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    def refuse(**told: object) -> None:
        raise ConnectionError("no answer")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)

    with pytest.raises(SettingError, match=r"10\.0\.0\.9:6379 did not \(no answer\)"):
        make_engine("ray", address="10.0.0.9:6379")
