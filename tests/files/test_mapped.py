"""Arrays in a file come back as they went in, mapped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from fastbandit.files.mapped import Arrays, map_arrays, pieces_of

ARRAYS = {
    "floats": np.arange(12, dtype=np.float32).reshape(3, 4),
    "flags": np.array([True, False, True]),
    "bytes": np.frombuffer(b"hello", dtype=np.uint8),
    "whole": np.array([-1, 2**62], dtype=np.int64),
    "places": np.arange(5, dtype=np.int32),
    "none": np.empty((0, 7), dtype=np.float32),
    "one": np.array(2.5),
    "half": np.array([[0.5], [1.5]], dtype=np.float16),
    "across": np.arange(6, dtype=np.float64).reshape(2, 3).T,
}


def write(path: Path, arrays: Arrays) -> Path:
    path.write_bytes(b"".join(pieces_of(arrays)))
    return path


def read(path: Path) -> Arrays:
    with path.open("rb") as file:
        return map_arrays(file)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return write(tmp_path / "arrays", ARRAYS)


@pytest.mark.parametrize("reader", [read, load_file])
def test_arrays_come_back_also_through_safetensors(reader: Any, written: Path) -> None:
    found = {name: array for name, array in reader(written).items() if "fill" not in name}

    assert found.keys() == ARRAYS.keys()
    for name, array in found.items():
        assert array.dtype == ARRAYS[name].dtype
        assert array.shape == ARRAYS[name].shape
        assert np.array_equal(array, ARRAYS[name])


def test_mapped_arrays_begin_with_a_line_of_the_cache_and_cannot_be_changed(written: Path) -> None:
    for array in read(written).values():
        assert array.ctypes.data % 64 == 0 or array.size == 0
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert not array.flags.writeable
        assert not array.flags.owndata


def test_arrays_stay_when_their_file_is_gone(written: Path) -> None:
    found = read(written)
    written.unlink()

    assert found["floats"].sum() == 66


def test_files_of_another_writer_are_read(tmp_path: Path) -> None:
    arrays = {"a": np.arange(3, dtype=np.uint8), "b": np.arange(3, dtype=np.float64)}
    save_file(arrays, tmp_path / "arrays", metadata={"made": "elsewhere"})

    found = read(tmp_path / "arrays")

    assert found.keys() == arrays.keys()
    assert all(np.array_equal(found[name], arrays[name]) for name in arrays)


def test_an_array_that_another_writer_put_anywhere_is_copied_into_place(tmp_path: Path) -> None:
    notes = {
        "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]},
    }
    header = json.dumps(notes).encode()
    numbers = np.array([1, 2], dtype=np.float32)
    (tmp_path / "arrays").write_bytes(
        len(header).to_bytes(8, "little") + header + b"x" + numbers.tobytes()
    )

    found = read(tmp_path / "arrays")["b"]

    assert found.flags.aligned
    assert found.tolist() == [1, 2]


@pytest.mark.parametrize("shape", [[13], [11], [2, 7], [-12], [10**12]])
def test_sizes_that_do_not_fit_are_refused(tmp_path: Path, shape: list[int]) -> None:
    path = write(tmp_path / "arrays", {"a": np.zeros(12, dtype=np.float32)})
    payload = path.read_bytes()
    size = int.from_bytes(payload[:8], "little")
    notes = json.loads(payload[8 : 8 + size])
    notes["a"]["shape"] = shape
    header = json.dumps(notes).encode().ljust(size)
    path.write_bytes(len(header).to_bytes(8, "little") + header + payload[8 + size :])

    with pytest.raises((ValueError, TypeError)):
        read(path)
