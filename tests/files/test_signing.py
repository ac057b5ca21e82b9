"""A manifest is signed by the first key, and any of them vouches for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastbandit.errors import SettingError, SnapshotError
from fastbandit.files.manifest import SNAPSHOT, read_manifest, write_manifest
from fastbandit.files.signing import is_signed, read_keys, signature_of

OLD, NEW = b"an old key of 16 bytes", b"a new key, a little longer"


def test_a_signature_is_that_of_its_hash_and_key() -> None:
    signature = signature_of("abc", NEW)

    assert is_signed("abc", signature, [OLD, NEW])
    assert not is_signed("abd", signature, [OLD, NEW])
    assert not is_signed("abc", signature, [OLD])
    assert not is_signed("abc", "ünsigned", [NEW])


def test_keys_are_lines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(NEW + b"\n\n  " + OLD + b"\r\n")

    assert read_keys(str(path)) == [NEW, OLD]
    assert read_keys("") == ()


@pytest.mark.parametrize("content", [b"", b"\n", b"too short\n", NEW + b"\nshort\n"])
def test_short_keys_are_rejected(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys"
    path.write_bytes(content)

    with pytest.raises(SettingError, match="at least 16 characters"):
        read_keys(str(path))


def test_a_file_of_keys_needs_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="signing_key_file"):
        read_keys(str(tmp_path / "none"))


def read(path: Path, *keys: bytes) -> dict[str, object]:
    return read_manifest(path, kind=SNAPSHOT, format=1, keys=keys)


def test_a_signed_manifest_is_read_with_its_key_and_without_any(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    write_manifest(path, {"version": 3}, kind=SNAPSHOT, format=1, keys=[OLD])

    assert read(path, NEW, OLD) == read(path)
    assert read(path)["version"] == 3


@pytest.mark.parametrize("has", ["none", "another"])
def test_one_without_a_signature_of_ours_is_rejected(tmp_path: Path, has: str) -> None:
    path = tmp_path / "snapshot.json"
    keys = [] if has == "none" else [OLD]
    write_manifest(path, {"version": 3}, kind=SNAPSHOT, format=1, keys=keys)

    with pytest.raises(SnapshotError, match=f"signature .* it has {has}"):
        read(path, NEW)


def test_a_signature_does_not_vouch_for_other_notes(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    write_manifest(path, {"version": 3}, kind=SNAPSHOT, format=1, keys=[NEW])
    signature = json.loads(path.read_text())["signature"]
    write_manifest(path, {"version": 4}, kind=SNAPSHOT, format=1)
    path.write_text(json.dumps({**json.loads(path.read_text()), "signature": signature}))

    with pytest.raises(SnapshotError, match="another"):
        read(path, NEW)
