"""A delta is read as it was written, or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fastbandit.errors import SnapshotError
from fastbandit.storage.deltas import Delta, DeltaFiles

HASH = "ab" * 32


def delta(*, version: int = 3, number: int = 1, arms: int = 4, columns: int = 0) -> Delta:
    rows = np.arange(arms, dtype=np.int32)
    numbers = np.arange(arms * max(1, columns), dtype=np.float32)
    means = numbers.reshape((arms, columns) if columns else arms)
    return Delta(version, HASH, number, 70, 9, rows, means / np.float32(3), means + 1)


@pytest.mark.parametrize("columns", [0, 1, 7])
@pytest.mark.parametrize("arms", [0, 1, 1000])
def test_it_is_read_as_it_was_written(tmp_path: Path, arms: int, columns: int) -> None:
    files, written = DeltaFiles(tmp_path / "deltas"), delta(arms=arms, columns=columns)
    files.write(written)

    read = files.read(3, HASH)

    assert read is not None
    for name in ("version", "snapshot", "number", "seq", "learned"):
        assert getattr(read, name) == getattr(written, name)
    for name in ("rows", "means", "deviations"):
        np.testing.assert_array_equal(getattr(read, name), getattr(written, name))


def test_the_newest_takes_the_place_of_all_others(tmp_path: Path) -> None:
    files = DeltaFiles(tmp_path)
    files.write(delta(version=2))
    files.write(delta(number=1))
    mark = files.mark(3)
    files.write(delta(number=2))

    assert files.mark(3) != mark
    assert [path.name for path in tmp_path.iterdir()] == ["000003.delta"]
    read = files.read(3, HASH)
    assert read is not None
    assert read.number == 2


def test_there_may_be_none(tmp_path: Path) -> None:
    files = DeltaFiles(tmp_path / "nowhere")

    assert files.read(3, HASH) is None
    assert files.mark(3) is None


def test_each_flipped_byte_is_noticed() -> None:
    content = delta().to_bytes()
    for place in range(len(content)):
        broken = bytearray(content)
        broken[place] ^= 1
        with pytest.raises(SnapshotError, match="as it was written"):
            Delta.of(bytes(broken))


OLD, NEW = b"o" * 16, b"n" * 16


@pytest.mark.parametrize("keys", [[NEW], [OLD, NEW], []])
def test_one_that_is_signed_is_read_by_whoever_has_its_key_or_none(keys: list[bytes]) -> None:
    assert Delta.of(delta().to_bytes(keys=[NEW, OLD]), keys=keys).number == 1


@pytest.mark.parametrize("signing", [[], [OLD]])
def test_one_without_a_signature_by_a_key_is_refused(tmp_path: Path, signing: list[bytes]) -> None:
    DeltaFiles(tmp_path, keys=signing).write(delta())

    with pytest.raises(SnapshotError, match=r"no key in snapshots\.signing_key_file signed it"):
        DeltaFiles(tmp_path, keys=[NEW]).read(3, HASH)


def test_each_flipped_byte_of_a_signed_one_is_noticed() -> None:
    content = delta().to_bytes(keys=[NEW])
    for position in range(len(content)):
        broken = bytearray(content)
        broken[position] ^= 1
        with pytest.raises(SnapshotError, match="as it was written"):
            Delta.of(bytes(broken), keys=[NEW])


@pytest.mark.parametrize("keep", [0, 1, 50, 200, -1])
def test_a_part_of_one_is_refused(keep: int) -> None:
    with pytest.raises(SnapshotError, match="as it was written"):
        Delta.of(delta().to_bytes()[:keep])


@pytest.mark.parametrize(("version", "snapshot"), [(2, HASH), (3, "cd" * 32)])
def test_one_of_another_snapshot_is_refused(version: int, snapshot: str) -> None:
    with pytest.raises(SnapshotError, match="made for"):
        delta().check_for(version, snapshot)


def test_where_none_can_be_written_the_last_one_stays(tmp_path: Path) -> None:
    files = DeltaFiles(tmp_path)
    files.write(delta())
    (tmp_path / "000004.delta").mkdir()

    with pytest.raises(SnapshotError, match="written to"):
        files.write(delta(version=4))

    assert files.read(3, HASH) is not None
    assert len([*tmp_path.iterdir()]) == 2
