"""A worker has its share of what the service may do at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbandit.serving.worker import own_share
from tests.serving.little_service import config_in


@pytest.mark.parametrize(("workers", "share"), [(1, 9), (2, 5), (4, 3), (16, 1)])
def test_requests_under_way_are_shared(tmp_path: Path, workers: int, share: int) -> None:
    config = config_in(tmp_path, server__workers=workers, server__max_waiting=9)

    assert own_share(config).server.max_waiting == share
    assert own_share(config).server.workers == workers
