"""Partitions on a device find what those on the CPU find."""

from __future__ import annotations

import pytest
import torch
from fakes import vectors_of

from fastbandit.arms.device_partitions import DevicePartitions
from fastbandit.arms.partitions import PARTITION, build_partitions

DIM = 4


@pytest.mark.parametrize("count", [300, 5_000, 40_000])
@pytest.mark.parametrize("partitions", [1, 4, 40])
def test_a_device_finds_the_same_rows(count: int, partitions: int) -> None:
    held = build_partitions(vectors_of(count, DIM))
    points = vectors_of(60, DIM, seed=1)

    found = DevicePartitions(held, torch.device("cpu")).in_partitions(
        torch.from_numpy(points), partitions
    )

    wanted = held.in_partitions(points, partitions)
    is_same = found.numpy() == wanted
    assert found.shape == wanted.shape
    assert is_same.mean() > 0.99  # partitions equally far to the last digit may change positions


@pytest.mark.parametrize("dim", [1, 8, 9, 20])
def test_a_device_finds_the_same_rows_in_any_number_of_columns(dim: int) -> None:
    held = build_partitions(vectors_of(5_000, dim))
    points = vectors_of(60, dim, seed=1)

    found = DevicePartitions(held, torch.device("cpu")).in_partitions(torch.from_numpy(points), 4)

    assert (found.numpy() == held.in_partitions(points, 4)).mean() > 0.99


def test_a_device_looks_up_any_number_of_points_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = DevicePartitions(build_partitions(vectors_of(9_000, DIM)), torch.device("cpu"))
    points = torch.from_numpy(vectors_of(50, DIM, seed=1))
    at_once = device.in_partitions(points, 4)

    monkeypatch.setattr("fastbandit.arms.device_partitions._AT_ONCE", 1)

    assert torch.equal(device.in_partitions(points, 4), at_once)


def test_a_device_leaves_no_more_positions_empty_than_partitions_do() -> None:
    device = DevicePartitions(build_partitions(vectors_of(400, DIM)), torch.device("cpu"))

    rows = device.in_partitions(torch.from_numpy(vectors_of(5, DIM, seed=1)), 10**6)

    assert rows.shape == (5, 16 * PARTITION)
    assert all(sorted(row[row >= 0].tolist()) == list(range(400)) for row in rows)
