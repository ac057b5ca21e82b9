"""MovieLens: users, movies and ratings, in the .csv layout of today or the older .dat one.

Harper and Konstan, "The MovieLens datasets: history and context" (2015). Only movies that
somebody rated are arms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import known_name
from fastbandit.errors import DataError
from fastbandit.features.csv_files import read_blocks, to_numbers
from lab.experiments.datasets.files import SOURCES, find, find_beside
from lab.experiments.datasets.ratings import (
    Ratings,
    one_hot,
    read_ratings,
    scaled,
    tabled,
)
from lab.experiments.environment import Tabled

VERSIONS = {
    "ml-latest-small": "movielens",
    "ml-latest": "ml-latest",
    "ml-32m": "ml-32m",
    "ml-25m": "ml-25m",
    "ml-10m": "ml-10m",
    "ml-1m": "ml-1m",
}
"""Versions, and the names of their sources."""

_MOVIES = ("movieId", "title", "genres")
_USERS = ("userId", "gender", "age", "occupation", "zip")
_YEAR = re.compile(r"\((\d{4})(?:[-–]\d{0,4})?\)\s*$")


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    version: str = "ml-latest-small",
    unrated: str = "zero",
    visits_per_user: int = 10,
) -> Tabled:
    """Read ratings; contexts are users, arms are rated movies with genres and year."""
    known_name("version of MovieLens", version, tuple(VERSIONS))
    source = SOURCES[VERSIONS[version]]
    path = find(source.name, source.files, data=data)
    ratings = read_ratings(path)
    arms, missing = _arms(ratings, path, dataset=source.name)
    notes = [f"{version}: {len(ratings.users):,} users, {len(arms):,} rated movies."]
    if missing:
        notes.append(f"{missing:,} rated movies have no title and no genres.")
    return tabled(
        ratings,
        arms,
        name=name,
        seed=seed,
        unrated=unrated,
        visits_per_user=visits_per_user,
        notes=notes,
        user_features=_user_features(ratings, path),
    )


def _arms(ratings: Ratings, path: Path, *, dataset: str) -> tuple[NDArray[np.float32], int]:
    """Return the features of each rated movie, and how many movies have none."""
    movies = find_beside(path, [f"movies{path.suffix}"], dataset=dataset)
    titles, genres = _titles_and_genres(movies)
    years = np.array([_year(titles.get(movie, "")) for movie in ratings.movies.tolist()])
    groups = [genres.get(movie, ()) for movie in ratings.movies.tolist()]
    names = sorted({genre for group in groups for genre in group})
    missing = sum(movie not in titles for movie in ratings.movies.tolist())
    return np.hstack([one_hot(groups, names), scaled(years)]), missing


def _titles_and_genres(path: Path) -> tuple[dict[int, str], dict[int, Sequence[str]]]:
    titles: dict[int, str] = {}
    genres: dict[int, Sequence[str]] = {}
    for movie, title, listed in zip(*_read(path, _MOVIES, _MOVIES), strict=True):
        titles[movie] = title
        genres[movie] = () if listed.startswith("(no genres") else listed.split("|")
    return titles, genres


def _read(path: Path, columns: Sequence[str], header: Sequence[str]) -> list[list[str]]:
    """Read columns of a .csv or .dat file; the first one holds whole numbers."""
    is_dat = path.suffix == ".dat"
    table: list[list[str]] = [[] for _ in columns]
    for block in read_blocks(path, columns, header=header if is_dat else None):
        for values, column in zip(table, columns, strict=True):
            values += block[column]
    ids = to_numbers(table[0], path=path, column=columns[0], has_header=not is_dat)
    return [ids.astype(np.int64).tolist(), *table[1:]]


def _year(title: str) -> float:
    found = _YEAR.search(title)
    return float(found[1]) if found else float("nan")


def _user_features(ratings: Ratings, path: Path) -> NDArray[np.float32] | None:
    """Return gender, age group and occupation of each user where the version has them."""
    users = path.parent / "users.dat"
    if path.suffix != ".dat" or not users.exists():
        return None
    ids, *traits = _read(users, _USERS[:4], _USERS)
    rows = {user: row for row, user in enumerate(ids)}
    unknown = [user for user in ratings.users.tolist() if user not in rows]
    if unknown:
        raise DataError(
            f"{users} needs a row for each user who rated: user {unknown[0]} has none. Download "
            f"it again."
        )
    chosen = [rows[user] for user in ratings.users.tolist()]
    parts = [one_hot([[trait[row]] for row in chosen], sorted(set(trait))) for trait in traits]
    return np.hstack(parts)
