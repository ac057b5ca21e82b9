"""A folder of arrays vouches for itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fastbandit.errors import SnapshotError
from fastbandit.files.manifest import (
    MANIFEST,
    digest_of,
    read_arrays,
    read_manifest,
    write_arrays,
    write_manifest,
)

NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_arrays(tmp_path, {"numbers": NUMBERS}, {"note": 7}, kind="bandit", format=1)
    return tmp_path


def test_arrays_and_notes_come_back(folder: Path) -> None:
    manifest, arrays = read_arrays(folder, kind="bandit", format=1)

    assert manifest["note"] == 7
    np.testing.assert_array_equal(arrays["numbers"], NUMBERS)


def test_old_arrays_leave_when_new_ones_are_written(folder: Path) -> None:
    write_arrays(folder, {"numbers": NUMBERS + 1}, {}, kind="bandit", format=1)

    assert len(list(folder.glob("arrays*"))) == 1


def test_a_folder_of_another_kind_is_not_written_over(folder: Path) -> None:
    before = (folder / MANIFEST).read_bytes()

    with pytest.raises(SnapshotError, match="holds a bandit"):
        write_arrays(folder, {}, {}, kind="frozen bandit", format=1)

    assert (folder / MANIFEST).read_bytes() == before


def test_a_folder_of_another_kind_names_what_reads_it(folder: Path) -> None:
    with pytest.raises(SnapshotError, match=r"Read it with Bandit\.load"):
        read_arrays(folder, kind="frozen bandit", format=1)


def test_another_format_is_an_error_that_names_both(folder: Path) -> None:
    write_manifest(folder / MANIFEST, {}, kind="bandit", format=2)

    with pytest.raises(SnapshotError, match=r"of format 1: .* has format 2"):
        read_arrays(folder, kind="bandit", format=1)


def test_a_manifest_that_was_changed_is_not_trusted(folder: Path) -> None:
    notes = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**notes, "note": 8}))

    with pytest.raises(SnapshotError, match="SHA-256 differs"):
        read_manifest(folder / MANIFEST, kind="bandit", format=1)


def test_arrays_that_were_changed_are_not_trusted_unless_that_is_asked(folder: Path) -> None:
    (path,) = folder.glob("arrays*")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)

    with pytest.raises(SnapshotError, match="not the ones that were saved"):
        read_arrays(folder, kind="bandit", format=1)
    assert read_arrays(folder, kind="bandit", format=1, verify=False)[1]["numbers"].shape == (2, 3)


def test_the_hash_does_not_depend_on_the_order_of_keys() -> None:
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1}) != digest_of({"a": 1})
