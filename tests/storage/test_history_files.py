"""What versions learned lies in blocks that are merged, cut back, and made smaller."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fastbandit.storage.history_files import INDEX, HistoryFiles, Learned
from fastbandit.storage.snapshot_version import Cut


def some(first: int, count: int) -> Learned:
    """Return interactions of the decisions from a number on."""
    seqs = np.arange(first, first + count) + 1  # events are numbered from 1 on
    keys = np.stack([seqs + 1, seqs, np.zeros_like(seqs)], axis=1)
    contexts = np.stack([seqs, -seqs], axis=1).astype(np.float32)
    return Learned(keys, contexts, seqs % 7, seqs.astype(np.float32))


def cut(interactions: int) -> Cut:
    return Cut(seq=interactions + 10, at=1, since=0, interactions=interactions)


@pytest.fixture
def files(tmp_path: Path) -> HistoryFiles:
    found = HistoryFiles(tmp_path / "history")
    for first in range(0, 100, 10):
        found.write(cut(first), cut(first + 10), some(first, 10))
    return found


def decisions(files: HistoryFiles, count: int) -> list[int]:
    found = files.read(cut(count))
    assert found is not None
    return [int(seq) - 1 for seq in found.keys[:, 1]]


def test_each_version_has_what_it_learned(files: HistoryFiles) -> None:
    for count in (10, 50, 100):
        assert decisions(files, count) == list(range(count))
    found = files.read(cut(100))
    assert found is not None
    np.testing.assert_array_equal(found.contexts[:, 1], -found.keys[:, 1])
    np.testing.assert_array_equal(found.rows, found.keys[:, 1] % 7)


def test_small_blocks_are_merged(files: HistoryFiles) -> None:
    assert len(list(files.folder.glob("*.safetensors"))) <= 4
    assert {*files.files()} == {*files.folder.glob("*.safetensors"), files.folder / INDEX}


def test_after_a_rollback_it_goes_on_from_there(files: HistoryFiles) -> None:
    files.write(cut(30), cut(35), some(1_000, 5))

    assert decisions(files, 35) == [*range(30), *range(1_000, 1_005)]
    assert files.read(cut(100)) is None
    files.write(cut(35), cut(40), some(2_000, 5))
    assert decisions(files, 40) == [*range(30), *range(1_000, 1_005), *range(2_000, 2_005)]


def test_what_is_removed_does_not_come_back(files: HistoryFiles) -> None:
    assert files.remove(until=5, decisions=[43, 78, 101]) == 7

    assert decisions(files, 50) == [seq for seq in range(5, 50) if seq != 42]
    files.write(cut(100), cut(110), some(100, 10))
    assert decisions(files, 110)[-9:] == list(range(101, 110))
    files.replace(cut(110), some(0, 110))
    assert not {*decisions(files, 110)} & {0, 1, 2, 3, 4, 42, 77, 100}


def test_what_is_damaged_or_unknown_is_not_there(files: HistoryFiles) -> None:
    assert files.read(cut(55)) is None
    block = max(files.folder.glob("*.safetensors"), key=lambda path: path.stat().st_size)
    content = bytearray(block.read_bytes())
    content[-100] ^= 1
    block.write_bytes(bytes(content))

    assert files.read(cut(100)) is None
    assert files.remove(decisions=[4]) == 0  # and it is made anew without it
    files.replace(cut(100), some(0, 100))
    assert 3 not in decisions(files, 100)


def test_an_index_that_cannot_be_read_is_an_empty_one(files: HistoryFiles) -> None:
    (files.folder / INDEX).write_text("[")

    assert files.read(cut(10)) is None
    assert files.files() == [files.folder / INDEX]
