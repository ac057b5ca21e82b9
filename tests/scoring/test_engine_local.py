"""Engines of this machine through the laws of fastbandit/cluster/engine_checks.py."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path

import pytest

from fastbandit.cluster.engine import Engine, HereEngine, make_engine
from fastbandit.cluster.engine_checks import LAWS
from fastbandit.cluster.local_engine import LocalEngine
from fastbandit.cores import cores
from fastbandit.errors import SettingError


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_local_engine_keeps_the_law(law: Callable[[Engine, Path], None], tmp_path: Path) -> None:
    before = set(active_children())

    law(LocalEngine(2), tmp_path)

    assert set(active_children()) <= before


@pytest.mark.parametrize("law", LAWS[:4], ids=lambda law: law.__name__)
def test_an_engine_here_keeps_the_law(law: Callable[[Engine, Path], None], tmp_path: Path) -> None:
    law(HereEngine(), tmp_path)


def add(job: int, *, tell: Callable[[int], None]) -> int:
    tell(7)
    return job + 1


def test_a_local_worker_tells_its_steps() -> None:
    news = list(LocalEngine(1).run(add, [1, 2]))

    assert [(told.job, told.steps) for told in news if not told.is_over] == [(0, 7), (1, 7)]


def test_an_engine_is_made_by_its_name() -> None:
    assert make_engine("local", workers=3) == LocalEngine(3)
    assert make_engine("local").workers == cores()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": "spark"}, r"local, ray: got 'spark'"),
        ({"name": "local", "workers": 0}, r"at least 1 worker: got 0"),
        ({"name": "local", "address": "auto"}, r"needs the engine ray: got 'auto'.*--engine ray"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        make_engine(**settings)  # type: ignore[arg-type]


def test_ray_says_what_to_install_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)

    with pytest.raises(ImportError, match=r"pip install 'fastbandit\[cluster\]'"):
        make_engine("ray")
