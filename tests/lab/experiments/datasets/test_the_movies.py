"""The Movies Dataset: ratings joined with metadata, broken rows and all."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from fastbandit.errors import DataError, SettingError
from fastbandit.features.kinds import Ids
from lab.experiments.datasets import load, the_movies
from lab.experiments.environment import Tabled

REAL = Path(os.environ.get("FASTBANDIT_DATA") or Path(__file__).parents[4] / "shared" / "data")

RATINGS = "userId,movieId,rating,timestamp\n1,10,5.0,1\n1,20,2.0,1\n2,30,3.0,1\n2,40,1.0,1\n"
LINKS = "movieId,imdbId,tmdbId\n10,0114709,862\n20,0113497,8844.0\n30,0113228,\n40,1,77\n50,2,78\n"
REDUCED = """id,title,genres,release_date,revenue,runtime,vote_average,vote_count
862,Toy Story,"['Animation', 'Comedy']",1995-10-30,373554033.0,81.0,7.7,5415.0
8844,Jumanji,"['Comedy']",,0.0,0.0,6.9,2413.0
862,Toy Story again,"['Western']",1990-10-30,1.0,1.0,1.0,1.0
1997-08-20,,['Carousel Productions'],,,,,
99,Not rated,"['Western']",1990-01-01,1.0,90.0,1.0,1.0
"""
ORIGINAL = """adult,budget,genres,id,overview,release_date,revenue,runtime,vote_average,vote_count
False,3,"[{'id': 16, 'name': 'Animation'}, {'id': 35, 'name': 'Comedy'}]",862,"Woody
and Buzz",1995-10-30,373554033,81.0,7.7,5415
False,6,"[{'id': 35, 'name': 'Comedy'}]",8844,"Jumanji",,0,0.0,6.9,2413
False,0,[],99,Cut
 - Written by X,0.06,[{'iso': 'CA'}],1997-08-20,0
"""
KEYWORDS = """id,keywords
862,"[{'id': 1, 'name': 'toy'}, {'id': 2, 'name': ""child's play""}]"
8844,"[{'id': 1, 'name': 'toy'}]"
77,[]
99,"[{'id': 3, 'name': 'unseen'}]"
"""
FILES = {
    "ratings_small.csv": RATINGS,
    "links_small.csv": LINKS,
    "movies_metadata_reduced.csv": REDUCED,
    "keywords.csv": KEYWORDS,
}


def write(folder: Path, files: dict[str, str]) -> Path:
    home = folder / "the-movies"
    home.mkdir()
    for name, text in files.items():
        content = text.encode()
        (home / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder


def read(folder: Path, *, keywords: int = 64, unrated: str = "zero") -> Tabled:
    return the_movies.load(
        name="the-movies", data=folder, seed=0, keywords=keywords, unrated=unrated
    )


def test_rated_movies_are_arms_also_those_without_metadata(tmp_path: Path) -> None:
    env = read(write(tmp_path, FILES))

    assert env.ids == ["10", "20", "30", "40"]
    assert env.context == Ids(2)
    assert env.rounds == 20
    assert np.allclose(env.expected_rewards.toarray(), [[1, 0.4, 0, 0], [0, 0, 0.6, 0.2]])


def test_features_are_genres_then_numbers_with_flags_where_they_are_missing(
    tmp_path: Path,
) -> None:
    arms = read(write(tmp_path, FILES), keywords=0).arms

    assert arms.shape == (4, 2 + 5 * 2)
    assert arms[:, :2].tolist() == [[1, 1], [0, 1], [0, 0], [0, 0]]  # Animation, Comedy
    votes, average, revenue, runtime, year = arms[:, 2:].reshape(4, 5, 2).transpose(1, 0, 2)
    assert votes.tolist() == [[1, 0], [-1, 0], [0, 1], [0, 1]]
    assert average.tolist() == [[1, 0], [-1, 0], [0, 1], [0, 1]]
    for known_once in (revenue, runtime, year):
        assert known_once.tolist() == [[0, 0], [0, 1], [0, 1], [0, 1]]


def test_the_original_layout_gives_the_same_features(tmp_path: Path) -> None:
    reduced = read(write(tmp_path, FILES))
    (tmp_path / "the-movies" / "movies_metadata.csv").write_text(ORIGINAL, encoding="utf-8")

    original = read(tmp_path)

    assert np.array_equal(original.arms, reduced.arms)
    assert original.notes == reduced.notes


def test_frequent_keywords_come_first_and_only_so_many(tmp_path: Path) -> None:
    folder = write(tmp_path, FILES)

    assert read(folder).arms[:, -2:].tolist() == [[1, 1], [1, 0], [0, 0], [0, 0]]
    assert read(folder, keywords=1).arms[:, 12:].tolist() == [[1], [1], [0], [0]]


def test_gzipped_files_read_the_same(tmp_path: Path) -> None:
    (tmp_path / "gz").mkdir()
    packed = {k: v for k, v in FILES.items() if "small" in k}
    packed |= {f"{k}.gz": v for k, v in FILES.items() if "small" not in k}

    plain, small = read(write(tmp_path, FILES)), read(write(tmp_path / "gz", packed))

    assert np.array_equal(plain.arms, small.arms)


def test_notes_count_arms_broken_rows_and_the_movies_without_metadata(tmp_path: Path) -> None:
    notes = " ".join(read(write(tmp_path, FILES)).notes)

    assert "4 arms" in notes
    assert "14,210 of the paper could not be reproduced" in notes
    assert "2 arms have no metadata; 1 broken rows of metadata skipped" in notes


def test_the_full_ratings_are_read_where_the_small_ones_are_missing(tmp_path: Path) -> None:
    files = {name.replace("_small", ""): text for name, text in FILES.items()}

    assert read(write(tmp_path, files)).size == 4


def test_fitted_rewards_fill_the_table(tmp_path: Path) -> None:
    rewards = read(write(tmp_path, FILES), unrated="fitted").expected_rewards

    assert isinstance(rewards, np.ndarray)
    assert rewards.min() >= 0.1


@pytest.mark.parametrize("missing", ["links_small", "movies_metadata", "keywords"])
def test_a_missing_file_is_named(missing: str, tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if not name.startswith(missing)}

    with pytest.raises(DataError, match=rf"{missing}.*\.csv.* beside ratings_small\.csv"):
        read(write(tmp_path, files))


@pytest.mark.parametrize("text", ["[{'id': 1", "[{'id': 1}]", "__import__('os')", "3"])
def test_keywords_that_are_no_list_of_names_are_refused(text: str, tmp_path: Path) -> None:
    files = FILES | {"keywords.csv": f'id,keywords\n862,"{text}"\n'}

    with pytest.raises(DataError, match="needs a list of names for the id 862"):
        read(write(tmp_path, files))


def test_a_number_of_keywords_below_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="at least 0: got -1"):
        read(write(tmp_path, FILES), keywords=-1)


@pytest.mark.skipif(
    not (REAL / "the-movies-dataset" / "ratings_small.csv").exists(), reason="needs the real files"
)
def test_the_real_files_have_the_published_sizes() -> None:
    env = load("the-movies", data=REAL)

    assert isinstance(env, Tabled)
    assert (env.size, env.rounds, env.context) == (9_066, 6_710, Ids(671))
    assert env.expected_rewards.nnz == 100_004
    assert np.isfinite(env.arms).all()
    assert env.arms[:, -64:].sum(axis=0).min() > 50
