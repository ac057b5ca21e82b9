"""The Movies Dataset of Kaggle: ratings of MovieLens, and what TMDB knows about each movie.

The movies that somebody rated are arms, described by genres, votes, revenue, runtime, year and
frequent keywords.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError, SettingError
from fastbandit.features.csv_files import read_csv
from fastbandit.progress import progress_bar
from lab.experiments.datasets.files import SOURCES, find, find_beside
from lab.experiments.datasets.ratings import one_hot, read_ratings, scaled, tabled
from lab.experiments.environment import Tabled

_METADATA = tuple(
    f"movies_metadata{ending}" for ending in (".csv", ".csv.gz", "_reduced.csv", "_reduced.csv.gz")
)
_NUMBERS = ("vote_count", "vote_average", "revenue", "runtime")
_COLUMNS = ("id", "genres", "release_date", *_NUMBERS)

Floats = NDArray[np.float64]


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    keywords: int = 64,
    unrated: str = "zero",
    visits_per_user: int = 10,
) -> Tabled:
    """Read ratings and metadata; contexts are users, arms are rated movies."""
    if not isinstance(keywords, int) or keywords < 0:
        raise SettingError(
            f"The number of keywords needs to be a whole number of at least 0: got {keywords!r}."
        )
    path = find(name, SOURCES["the-movies"].files, data=data)
    ratings = read_ratings(path)
    pages = _pages(ratings.movies.tolist(), path)
    with progress_bar("Reading movies") as progress:
        progress(0, 2, "reading metadata")
        metadata = _read_metadata(find_beside(path, _METADATA, dataset="the-movies"), set(pages))
        progress(1, 2, "reading keywords")
        words = _read_keywords(path, set(pages)) if keywords else {}
    arms = np.hstack([_features(pages, metadata), _frequent(pages, words, keywords)])
    return tabled(
        ratings,
        arms,
        name=name,
        seed=seed,
        unrated=unrated,
        visits_per_user=visits_per_user,
        notes=_notes(pages, metadata),
    )


@dataclass(frozen=True)
class _Metadata:
    """What TMDB says about movies, by its ids, and how many rows were broken."""

    genres: Mapping[int, Sequence[str]]
    numbers: Mapping[int, Sequence[float]]
    broken: int


def _notes(pages: Sequence[int], metadata: _Metadata) -> list[str]:
    unknown = sum(page not in metadata.numbers for page in pages)
    return [
        f"{len(pages):,} arms, the movies that were rated; the 14,210 of the paper could not be "
        f"reproduced from these files.",
        f"{unknown:,} arms have no metadata; {metadata.broken} broken rows of metadata skipped.",
    ]


def _pages(movies: Sequence[int], path: Path) -> list[int]:
    """Return the id at TMDB of each movie; -1 where there is none."""
    order = ["links_small.csv", "links.csv"]
    links = find_beside(path, order if "small" in path.name else order[::-1], dataset="the-movies")
    table = read_csv(links, ["movieId", "tmdbId"])
    pairs = zip(table["movieId"], table["tmdbId"], strict=True)
    found = {_whole(movie): _whole(page) for movie, page in pairs}
    return [found.get(movie, -1) for movie in movies]


def _whole(text: str) -> int:
    """Read an id, also one written as 862.0; -1 where it is none."""
    digits = text.strip().removesuffix(".0")
    return int(digits) if digits.isdecimal() else -1


def _read_metadata(path: Path, wanted: set[int]) -> _Metadata:
    """Read the rows that are wanted, the first of each id; some rows of the original are broken.

    A line break inside a text cuts three rows in two: their second halves have a date for an id.
    """
    table = read_csv(path, _COLUMNS, is_ragged=True)
    ids = [_whole(text) for text in table["id"]]
    genres: dict[int, Sequence[str]] = {}
    numbers: dict[int, Sequence[float]] = {}
    for row, page in enumerate(ids):
        if page in wanted and page >= 0 and page not in numbers:
            genres[page] = _names(table["genres"][row], path, page)
            votes, average, revenue, runtime = (_number(table[c][row]) for c in _NUMBERS)
            year = _number(table["release_date"][row][:4])
            numbers[page] = (votes, average, revenue or np.nan, runtime or np.nan, year)
    return _Metadata(genres, numbers, broken=ids.count(-1))


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return float("nan")
    return number if np.isfinite(number) else float("nan")


def _names(text: str, path: Path, page: int) -> list[str]:
    """Read a list of names, or of {'id': …, 'name': …}, written as in Python."""
    if not text.strip():
        return []
    try:
        entries = ast.literal_eval(text)
        return [entry["name"] if isinstance(entry, dict) else str(entry) for entry in entries]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as error:
        raise DataError(
            f"{path} needs a list of names for the id {page}: got {text[:60]!r}. Download it again."
        ) from error


def _features(pages: Sequence[int], metadata: _Metadata) -> NDArray[np.float32]:
    """Return genres, then votes, their average, revenue, runtime and year, each with a flag."""
    genres = [metadata.genres.get(page, ()) for page in pages]
    names = sorted({genre for group in genres for genre in group})
    numbers = np.array([metadata.numbers.get(page, (np.nan,) * 5) for page in pages])
    numbers[:, [0, 2]] = np.log1p(np.maximum(numbers[:, [0, 2]], 0.0))
    return np.hstack([one_hot(genres, names), *(scaled(column) for column in numbers.T)])


def _read_keywords(path: Path, wanted: set[int]) -> dict[int, Sequence[str]]:
    file = find_beside(path, ["keywords.csv", "keywords.csv.gz"], dataset="the-movies")
    table = read_csv(file, ["id", "keywords"])
    pairs = zip(map(_whole, table["id"]), table["keywords"], strict=True)
    return {page: _names(text, file, page) for page, text in pairs if page in wanted and page >= 0}


def _frequent(
    pages: Sequence[int], words: Mapping[int, Sequence[str]], count: int
) -> NDArray[np.float32]:
    """Mark the `count` keywords that most arms have."""
    groups = [words.get(page, ()) for page in pages]
    times = Counter(word for group in groups for word in set(group))
    names = sorted(times, key=lambda word: (-times[word], word))[:count]
    return one_hot(groups, names)
