"""Every engine of this machine through the laws of fastbandit/testing/engines.py."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path

import pytest

from fastbandit.cluster.engine import Engine, SerialEngine
from fastbandit.cluster.local_engine import LocalEngine
from fastbandit.testing.engines import LAWS


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_local_engine_keeps_the_law(law: Callable[[Engine, Path], None], tmp_path: Path) -> None:
    before = set(active_children())

    law(LocalEngine(2), tmp_path)

    assert set(active_children()) <= before


@pytest.mark.parametrize("law", LAWS[:4], ids=lambda law: law.__name__)
def test_an_engine_here_keeps_the_law(law: Callable[[Engine, Path], None], tmp_path: Path) -> None:
    law(SerialEngine(), tmp_path)
