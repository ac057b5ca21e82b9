"""Changes of the arms in a file: all that were kept are read again, and none that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastbandit.serving.arm_change_file import ArmChangeFile, KnownChanges
from fastbandit.storage.events import Arm, ArmsChanged

PUT = ArmsChanged([Arm("a", [0.5], {"price": 1.0})], seq=4, at=9)
TAKEN = ArmsChanged(discarded=["a", 7], seq=6, at=10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "changes.jsonl"


def test_what_is_stored_is_read_again(path: Path) -> None:
    ArmChangeFile(path).write(KnownChanges(3, 4, [PUT]))
    ArmChangeFile(path).add([TAKEN])

    assert ArmChangeFile(path).read() == KnownChanges(3, 6, [PUT, TAKEN])


def test_without_changes_the_last_before_is_known(path: Path) -> None:
    ArmChangeFile(path).write(KnownChanges(9, 6))

    assert ArmChangeFile(path).read() == KnownChanges(9, 6)


def test_what_is_written_stands_in_place_of_what_was(path: Path) -> None:
    kept = ArmChangeFile(path)
    kept.write(KnownChanges(3, 6, [PUT, TAKEN]))
    kept.write(KnownChanges(5, 6, [TAKEN]))

    assert kept.read() == KnownChanges(5, 6, [TAKEN])


def test_without_a_file_nothing_is_known_and_nothing_added(path: Path) -> None:
    kept = ArmChangeFile(path)
    kept.add([PUT])

    assert kept.read() is None


def test_a_line_that_was_cut_off_is_left_out_wherever_it_was_cut(path: Path) -> None:
    kept = ArmChangeFile(path)
    kept.write(KnownChanges(3, 4, [PUT]))
    whole = len(path.read_bytes())
    kept.add([TAKEN])
    written = path.read_bytes()

    for length in range(whole, len(written)):
        path.write_bytes(written[:length])
        assert kept.read() == KnownChanges(3, 4, [PUT]), length


@pytest.mark.parametrize("content", [b"", b"{", b"null\n", b'{"after": "x"}\n'])
def test_a_file_that_cannot_be_read_is_as_none(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    assert ArmChangeFile(path).read() is None


def test_where_a_change_cannot_be_stored_there_is_no_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError("no room")

    kept = ArmChangeFile(path)
    kept.write(KnownChanges(3, 4, [PUT]))
    monkeypatch.setattr("os.fsync", fail)
    kept.add([TAKEN])

    assert not path.exists()
    assert "cannot be stored" in caplog.text
