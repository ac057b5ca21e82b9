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


@pytest.mark.parametrize(("workers", "share"), [(1, 9), (2, 5), (4, 3), (16, 1)])
def test_connections_are_shared(tmp_path: Path, workers: int, share: int) -> None:
    config = config_in(tmp_path, server__workers=workers, limits__connections=9)

    assert own_share(config).limits.connections == share


@pytest.mark.parametrize(("workers", "share"), [(1, 9001), (2, 4501), (4, 2251), (16, 1000)])
def test_held_bytes_are_shared_and_the_largest_request_fits(
    tmp_path: Path, workers: int, share: int
) -> None:
    sizes = {"limits__buffered_bytes": 9001, "server__max_body_bytes": 1000}
    config = config_in(tmp_path, server__workers=workers, **sizes)

    assert own_share(config).limits.buffered_bytes == share


def test_quotas_of_a_key_are_not_shared(tmp_path: Path) -> None:
    config = config_in(tmp_path, server__workers=4, limits__requests_per_second=8.0)

    assert own_share(config).limits.requests_per_second == 8.0
