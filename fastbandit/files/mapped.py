"""Arrays in one file, in the layout of safetensors, read by mapping it into memory.

Every array begins at a multiple of 64 bytes, a line of the processor's cache, so that a row
of 64 bytes is read at once. What lies between two arrays is an array too, named `fill.`.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from fastbandit.errors import SettingError

Arrays = dict[str, np.ndarray[Any, Any]]

_LINE = 64
_FILL = "fill."
_NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "float16": "F16",
    "uint32": "U32",
    "int32": "I32",
    "float32": "F32",
    "uint64": "U64",
    "int64": "I64",
    "float64": "F64",
}
_DTYPES = {written: np.dtype(name) for name, written in _NAMES.items()}


def pieces_of(arrays: Arrays) -> Iterator[bytes | memoryview]:
    """Yield what a file of arrays consists of, piece by piece: no array is copied."""
    placed = _filled_up(arrays)
    notes, end = {}, 0
    for name, array in placed.items():
        first, end = end, end + array.nbytes
        kind = _NAMES[array.dtype.name]
        notes[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [first, end]}
    header = json.dumps(notes).encode()
    header += b" " * (-(8 + len(header)) % _LINE)
    yield len(header).to_bytes(8, "little")
    yield header
    yield from (array.reshape(-1).view(np.uint8).data for array in placed.values())


def map_arrays(file: BinaryIO) -> Arrays:
    """Map a file of arrays into memory; they are read-only.

    Raises ValueError, KeyError or TypeError where the file is not laid out like that.
    """
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(mapped[:8], "little")
    notes = json.loads(mapped[8:start].decode())
    notes.pop("__metadata__", None)
    own = {name: note for name, note in notes.items() if not name.startswith(_FILL)}
    return {name: _map_one(mapped, start, note) for name, note in own.items()}


def _filled_up(arrays: Arrays) -> Arrays:
    """Return the arrays in C order, and others between them so that each begins with a line."""
    placed: Arrays = {}
    for name, array in arrays.items():
        if array.dtype.name not in _NAMES:
            raise SettingError(
                f"Arrays that are saved need numbers of at most 64 bits: got {array.dtype} for "
                f"{name}. Convert them first."
            )
        placed[name] = array = np.asarray(array, array.dtype.newbyteorder("="), order="C")
        if array.nbytes % _LINE:
            placed[f"{_FILL}{name}"] = np.zeros(-array.nbytes % _LINE, dtype=np.uint8)
    return placed


def _map_one(mapped: mmap.mmap, start: int, note: dict[str, Any]) -> np.ndarray[Any, Any]:
    first, last = note["data_offsets"]
    shape, dtype = tuple(note["shape"]), _DTYPES[note["dtype"]]
    array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, buffer=mapped, offset=start + first)
    if array.nbytes != last - first:
        raise ValueError(f"{last - first} bytes for shape {shape} of {dtype}")
    return np.require(array, requirements=["C", "A"])  # a copy, where another writer aligned less
