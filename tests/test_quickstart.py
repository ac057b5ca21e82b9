"""The quickstart runs as it stands, with its full training: the bandit learns what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_blocks import DOCS, run_page


@pytest.mark.slow
def test_the_quickstart_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(DOCS / "quickstart.md", tmp_path, monkeypatch)
