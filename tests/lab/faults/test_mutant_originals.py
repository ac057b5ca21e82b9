"""Every original loads and decides, before it is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.faults.mutant_originals import ORIGINALS, ask, make_original


@pytest.mark.slow
@pytest.mark.parametrize("name", ORIGINALS)
def test_an_original_loads_and_decides(name: str, tmp_path: Path) -> None:
    make_original(name, tmp_path / name)

    ask(name, tmp_path / name)
