"""Bibtex: which of 159 tags people gave to bibliography entries, from the words in them.

Katakis, Tsoumakas and Vlahavas, "Multilabel text classification for automated tag suggestion"
(ECML/PKDD discovery challenge 2008). Read from Mulan's arff file or from the text file of the
Extreme Classification Repository. A tag earns 1 where it was given to the entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError
from fastbandit.features.csv_files import open_text
from fastbandit.features.kinds import Sparse
from fastbandit.types import Inputs
from lab.experiments.datasets.files import SOURCES, find
from lab.experiments.datasets.sparse import to_csr
from lab.experiments.environment import Tabled

_LABELS = 159  # the last attributes of an arff file that names none of them TAG_
_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|\S+)""", re.IGNORECASE)

Lines = Iterator[tuple[int, str]]


def load(*, name: str, data: Path | None, seed: int) -> Tabled:
    """Read the entries and their tags; an entry is a bag of words, a tag is known by its row."""
    path = find(name, SOURCES["bibtex"].files, data=data)
    with open_text(path) as file:
        lines = ((number, line.strip()) for number, line in enumerate(file, 1))
        table = _read_arff(lines, path) if path.suffix == ".arff" else _read_text(lines, path)
    words = to_csr(table.numbers, table.rows, table.columns, shape=(table.size, table.words))
    tags = to_csr(
        np.ones(len(table.tags)), table.tag_rows, table.tags, shape=(table.size, table.labels)
    )
    return Tabled(
        name=name,
        context=Sparse(table.words),
        instances=Inputs(sparse=words),
        expected_rewards=tags,
        ids=table.names,
        seed=seed,
        notes=(f"{table.size:,} entries with {table.labels} tags, read from {path.name}.",),
    )


@dataclass(frozen=True)
class _Table:
    """Words of entries (rows, columns, numbers) and their tags (tag_rows, tags)."""

    size: int
    words: int
    labels: int
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    numbers: NDArray[np.float64]
    tag_rows: NDArray[np.int64]
    tags: NDArray[np.int64]
    names: list[str] | None = None


@dataclass
class _Cells:
    """What the rows of a file hold so far: indices and numbers, and how many in each row."""

    path: Path
    width: int
    indices: list[NDArray[np.int64]] = field(default_factory=list)
    numbers: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, line: int, indices: list[str], numbers: list[str]) -> None:
        """Take one more row, or say what is wrong with the line it stands on."""
        try:
            where = np.array(indices, dtype=np.int64)
            what = np.array(numbers, dtype=np.float64)
        except ValueError as error:
            raise _damaged(self.path, line, f"{error}") from error
        if len(where) != len(what) or not np.isfinite(what).all():
            raise _damaged(self.path, line, "pairs of an index and a number are needed")
        if len(where) and (where.min() < 0 or where.max() >= self.width):
            raise _damaged(self.path, line, f"indices go from 0 to {self.width - 1}")
        if len(np.unique(where)) != len(where):
            raise _damaged(self.path, line, "an index is named twice")
        self.indices.append(where)
        self.numbers.append(what)

    def joined(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the rows, indices and numbers of all cells."""
        counts = [len(indices) for indices in self.indices]
        rows = np.repeat(np.arange(len(counts)), counts)
        return rows, np.concatenate(self.indices), np.concatenate(self.numbers)


def _damaged(path: Path, line: int, why: str) -> DataError:
    return DataError(f"{path} has a damaged row in line {line}: {why}. Download it again.")


def _read_arff(lines: Lines, path: Path) -> _Table:
    """Read Mulan's layout: attributes by name, then sparse rows `{index number, …}` or dense."""
    names = _attributes(lines, path)
    is_tag = _which_are_tags(names, path)
    cells = _Cells(path, len(names))
    for line, text in lines:
        if text.startswith("{") and text.endswith("}"):
            pairs = text[1:-1].replace(",", " ").split()
            cells.add(line, pairs[::2], pairs[1::2])
        elif text and not text.startswith("%"):
            numbers = text.split(",")
            if len(numbers) != len(names):
                raise _damaged(path, line, f"{len(names)} numbers are needed, {len(numbers)} came")
            cells.add(line, [str(index) for index in range(len(names))], numbers)
    if not cells.indices:
        raise DataError(f"{path} needs rows after @data: it has none. Download it again.")
    return _split(cells, is_tag, names)


def _attributes(lines: Lines, path: Path) -> list[str]:
    """Read the header of an arff file up to @data."""
    names: list[str] = []
    for _, text in lines:
        if text.lower() == "@data":
            return names
        if found := _ATTRIBUTE.match(text):
            names.append(found[1].strip("'\""))
    raise DataError(f"{path} needs a line @data: it has none. Download it again.")


def _which_are_tags(names: list[str], path: Path) -> NDArray[np.bool_]:
    is_tag = np.array([name.startswith("TAG_") for name in names], dtype=np.bool_)
    if not is_tag.any():
        is_tag[-_LABELS:] = True
    if is_tag.all():
        raise DataError(
            f"{path} needs attributes for words and {_LABELS} for tags: it has {len(names)} in "
            f"all. Use bibtex.arff of Mulan."
        )
    return is_tag


def _split(cells: _Cells, is_tag: NDArray[np.bool_], names: list[str]) -> _Table:
    """Part the attributes that are tags from those that are words."""
    rows, indices, numbers = cells.joined()
    column = np.where(is_tag, np.cumsum(is_tag), np.cumsum(~is_tag)) - 1
    given, word = is_tag[indices] & (numbers != 0), ~is_tag[indices]
    return _Table(
        size=len(cells.indices),
        words=int((~is_tag).sum()),
        labels=int(is_tag.sum()),
        rows=rows[word],
        columns=column[indices[word]],
        numbers=numbers[word],
        tag_rows=rows[given],
        tags=column[indices[given]],
        names=[name for name, chosen in zip(names, is_tag, strict=True) if chosen],
    )


def _read_text(lines: Lines, path: Path) -> _Table:
    """Read the Extreme Classification layout: `rows words tags`, then `tag,tag index:number …`."""
    size, words, labels = _sizes(lines, path)
    cells, tags = _Cells(path, words), _Cells(path, labels)
    for line, text in _rows_of(lines, size):
        first, _, rest = text.partition(" ")
        if ":" in first or not first:
            first, rest = "", text
        given = first.split(",") if first else []
        tags.add(line, given, ["1"] * len(given))
        pairs = rest.split()
        if any(pair.count(":") != 1 for pair in pairs):
            raise _damaged(path, line, "words are needed as index:number")
        halves = rest.replace(":", " ").split()
        cells.add(line, halves[::2], halves[1::2])
    if len(cells.indices) != size:
        raise DataError(
            f"{path} needs {size} rows, by its first line: it has {len(cells.indices)}. Download "
            f"it again."
        )
    tag_rows, given_tags, _ = tags.joined()
    rows, columns, numbers = cells.joined()
    return _Table(size, words, labels, rows, columns, numbers, tag_rows, given_tags)


def _sizes(lines: Lines, path: Path) -> tuple[int, int, int]:
    first = next(lines, (1, ""))[1].split()
    if len(first) != 3 or not all(number.isdigit() and int(number) for number in first):
        raise DataError(
            f"{path} needs the numbers of rows, words and tags in its first line: got "
            f"{' '.join(first)[:40]!r}. Use Bibtex_data.txt of the Extreme Classification "
            f"Repository."
        )
    size, words, labels = (int(number) for number in first)
    return size, words, labels


def _rows_of(lines: Iterable[tuple[int, str]], size: int) -> Lines:
    """Return rows, also those without words and tags, but not the empty lines after the last."""
    for row, (line, text) in enumerate(lines):
        if text or row < size:
            yield line, text
