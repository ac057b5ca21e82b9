"""Words of texts, hashed: each counts in one of a few numbers, with a sign, by how rare it is.

Or in all of them, as its bucket of a fitted space says (`fastbandit.features.text_spaces`).
Feature hashing as in Weinberger et al., "Feature hashing for large scale multitask learning"
(2009). One compiled function reads one text and a million of them, so that both agree to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from fastbandit.compiler.compiled import compiled

RARITIES = 4096
"""Words share so many counts of how common they are."""
BUCKETS = 2048
"""Words share so many rows of a space; a divisor of `RARITIES`."""
_HIGHEST = 127  # of a space: stands for 1
_SEPARATOR = "\x00"
_ZERO = 255  # no byte of UTF-8: stands for a zero within a text
_FIRST, _PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a
_MIX = np.uint64(0xFF51AFD7ED558CCD)  # the finaliser of MurmurHash3
_MIX_NAME, _BITS, _HALF = 0xFF51AFD7ED558CCD, 2**64 - 1, 0.5**0.5

Bytes = NDArray[np.uint8]


@compiled()
def _is_letter(byte: int) -> bool:
    """Return whether a byte is part of a word: a digit, a letter, or any of those beyond ASCII."""
    is_plain = 48 <= byte <= 57 or 97 <= byte <= 122 or 65 <= byte <= 90 or byte == 95
    return is_plain or 128 <= byte < _ZERO


@compiled()
def _mixed(hashed: Any) -> Any:
    hashed ^= hashed >> np.uint64(33)
    hashed *= _MIX
    return hashed ^ (hashed >> np.uint64(33))


@compiled()
def add_tokens(
    data: Bytes, weights: NDArray[np.float64], space: NDArray[np.int8], out: NDArray[np.float32]
) -> None:
    """Add the words of texts that zero bytes part to the rows of `out` (n, 1 + dim), length 1.

    The first column of a row is 1 where it has no word. A `space` (`BUCKETS`, dim) says where words
    lie, and a text then in their middle; one of no rows leaves that to their hashes.
    """
    dim, row, words = out.shape[1] - 1, 0, 0
    sums = np.zeros(dim)
    hashed = _FIRST
    is_word = False
    for at in range(len(data) + 1):
        byte = 0 if at == len(data) else data[at]
        if _is_letter(byte):
            hashed = (hashed ^ np.uint64(byte)) * _PRIME
            is_word = True
            continue
        if is_word:  # a word has ended
            code = _mixed(hashed)
            weight = weights[code % np.uint64(RARITIES)]
            if len(space):
                bucket = code % np.uint64(BUCKETS)
                for column in range(dim):
                    sums[column] += weight * space[bucket, column]
            else:
                sign = 1.0 if (code >> np.uint64(40)) & np.uint64(1) else -1.0
                sums[(code >> np.uint64(12)) % np.uint64(dim)] += sign * weight
            words += 1
            hashed, is_word = _FIRST, False
        if byte == 0:  # a text has ended
            length = np.float64(_HIGHEST * words)  # in a space, the middle of its words
            if not len(space):
                length = np.sqrt((sums * sums).sum())
            for column in range(dim):
                out[row, 1 + column] = sums[column] / length if length > 0.0 else 0.0
                sums[column] = 0.0
            out[row, 0] = 0.0 if words else 1.0
            row, words = row + 1, 0


@compiled()
def count_tokens(data: Bytes, counts: NDArray[np.int64]) -> int:
    """Count in how many texts each shared count has a word; return the number of words."""
    last = np.full(len(counts), -1)
    hashed = _FIRST
    row, words, is_word = 0, 0, False
    for at in range(len(data) + 1):
        byte = 0 if at == len(data) else data[at]
        if _is_letter(byte):
            hashed = (hashed ^ np.uint64(byte)) * _PRIME
            is_word = True
            continue
        if is_word:
            code = _mixed(hashed) % np.uint64(RARITIES)
            if last[code] != row:
                counts[code] += 1
                last[code] = row
            words += 1
            hashed, is_word = _FIRST, False
        row += byte == 0
    return words


@compiled()
def list_tokens(data: Bytes, rows: NDArray[np.int64], codes: NDArray[np.int64]) -> int:
    """List the texts and the shared counts of words, one after the other; return their number."""
    hashed = _FIRST
    row, words, is_word = 0, 0, False
    for at in range(len(data) + 1):
        byte = 0 if at == len(data) else data[at]
        if _is_letter(byte):
            hashed = (hashed ^ np.uint64(byte)) * _PRIME
            is_word = True
            continue
        if is_word:
            rows[words], codes[words] = row, np.int64(_mixed(hashed) % np.uint64(RARITIES))
            words += 1
            hashed, is_word = _FIRST, False
        row += byte == 0
    return words


@compiled()
def add_names(
    data: Bytes, sizes: NDArray[np.int64], table: NDArray[np.uint32], out: NDArray[np.float32]
) -> None:
    """Add names of so many bytes each to the rows of `out` (n, 1 + dim), as `name_numbers` says."""
    at = 0
    for row in range(len(sizes)):
        _add_name(data[at : at + sizes[row]], table, out[row])
        at += sizes[row]


@compiled()
def _add_name(name: Bytes, table: NDArray[np.uint32], out: NDArray[np.float32]) -> None:
    """Add a name to `out` (1 + dim), of which the first is 1 where the name is empty."""
    if not len(name):
        out[0] = 1.0
        return
    dim, crc = np.uint64(len(out) - 1), np.uint32(0xFFFFFFFF)
    for byte in name:
        plain = np.uint32(0 if byte == _ZERO else byte)
        crc = table[(crc ^ plain) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
    code = (np.uint64(crc ^ np.uint32(0xFFFFFFFF)) + np.uint64(1)) * _MIX
    code ^= code >> np.uint64(33)
    one = (code >> np.uint64(1)) % dim
    apart = np.uint64(1) + (code >> np.uint64(21)) % max(dim - np.uint64(1), np.uint64(1))
    out[np.int64(1) + np.int64(one)] += np.float32(_HALF if code & np.uint64(1) else -_HALF)
    that = np.float32(_HALF if code & np.uint64(0x100000) else -_HALF)
    out[np.int64(1) + np.int64((one + apart) % dim)] += that


@compiled()
def add_row(
    data: Bytes,
    spans: NDArray[np.int64],
    weights: NDArray[np.float64],
    spaces: NDArray[np.int8],
    table: NDArray[np.uint32],
    out: NDArray[np.float32],
) -> None:
    """Add the values of one row, which zero bytes part, to `out`, each in its own span.

    A span (n, 5) says where its numbers begin and end, which of `weights` words have (-1 where the
    value is a name), and where in `spaces`, one after the other, their space begins and ends.
    """
    first = 0
    for begin, end, kind, start, stop in spans:
        last = first
        while last < len(data) and data[last]:
            last += 1
        if kind < 0:
            _add_name(data[first:last], table, out[begin:end])
        else:
            size = end - begin
            space = spaces[start:stop].reshape((stop - start) // (size - 1), size - 1)
            add_tokens(data[first:last], weights[kind], space, out[begin:end].reshape(1, size))
        first = last + 1


def crc_table() -> NDArray[np.uint32]:
    """Return what `crc32` does with each byte."""
    return np.array([~crc32(bytes([n]), 0xFFFFFFFF) & 0xFFFFFFFF for n in range(256)], np.uint32)


def names_of(names: Sequence[str]) -> tuple[Bytes, NDArray[np.int64]]:
    """Return names as UTF-8, one after the other, and how many bytes each has."""
    joined = "".join(names)
    if joined.isascii():
        data, sizes = joined.encode("ascii"), map(len, names)
    else:
        each = [name.encode("utf-8", "surrogatepass") for name in names]
        data, sizes = b"".join(each), map(len, each)
    return np.frombuffer(data, np.uint8), np.fromiter(sizes, np.int64, len(names))


def name_numbers(name: str, dim: int) -> tuple[int, float, int, float]:
    """Return the two numbers, of `dim`, that a whole name sets: where, and to what.

    They differ, else they might cancel each other, and the name would say nothing.
    """
    code = (crc32(name.encode("utf-8", "surrogatepass")) + 1) * _MIX_NAME & _BITS
    code ^= code >> 33
    one = (code >> 1) % dim
    other = (one + 1 + (code >> 21) % (dim - 1 or 1)) % dim
    return one, _HALF if code & 1 else -_HALF, other, _HALF if code & 0x100000 else -_HALF


def joined_bytes(values: Sequence[bytes]) -> Bytes:
    """Return the values of a row, parted by zero bytes."""
    data = b"\0".join(values)
    if data.count(0) != len(values) - 1:
        data = b"\0".join(one.replace(b"\0", bytes([_ZERO])) for one in values)
    return np.frombuffer(data, np.uint8)


def bytes_of(texts: Sequence[str]) -> Bytes:
    """Return texts in small letters as UTF-8, parted by zero bytes."""
    joined = _SEPARATOR.join(texts)
    if joined.count(_SEPARATOR) != len(texts) - 1:  # a text has zeros of its own
        joined = _SEPARATOR.join(text.replace(_SEPARATOR, " ") for text in texts)
    return np.frombuffer(joined.lower().encode("utf-8", "surrogatepass"), dtype=np.uint8)
