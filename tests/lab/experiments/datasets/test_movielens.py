"""MovieLens: rated movies are arms, users come again, and what is fitted is said to be."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fastbandit.errors import DataError, SettingError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids
from lab.experiments.datasets import load, movielens, ratings
from lab.experiments.datasets.ratings import Fit, Ratings, fitted_stars, read_ratings
from lab.experiments.environment import Tabled

REAL = Path(os.environ.get("FASTBANDIT_DATA") or Path(__file__).parents[4] / "shared" / "data")

RATINGS = """userId,movieId,rating,timestamp
7,10,5.0,1
7,30,2.5,1
3,30,1.0,1
3,10,4.0,1
9,40,0.5,1
"""
MOVIES = """movieId,title,genres
10,"One, The (1995)",Comedy|Drama
20,Never Rated (2001),Western
30,Two (2005–2007),Drama
40,No Year,(no genres listed)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "movielens" / "ml-latest-small"
    home.mkdir(parents=True)
    (home / "ratings.csv").write_text(RATINGS, encoding="utf-8")
    (home / "movies.csv").write_text(MOVIES, encoding="utf-8")
    return tmp_path


def read(folder: Path, *, unrated: str = "zero", visits_per_user: int = 10) -> Tabled:
    return movielens.load(
        name="movielens", data=folder, seed=0, unrated=unrated, visits_per_user=visits_per_user
    )


def test_only_rated_movies_are_arms(folder: Path) -> None:
    env = read(folder)

    assert env.ids == ["10", "30", "40"]
    assert env.embed_ids
    assert env.reward == "binary"


def test_arms_have_genres_a_scaled_year_and_a_flag_where_it_is_missing(folder: Path) -> None:
    arms = read(folder).arms

    assert arms.dtype == np.float32
    assert arms[:, :2].tolist() == [[1, 1], [0, 1], [0, 0]]  # Comedy, Drama
    assert arms[:, 2].tolist() == [-1, 1, 0]  # 1995 and 2005 about their mean
    assert arms[:, 3].tolist() == [0, 0, 1]


def test_each_user_comes_as_often_as_asked(folder: Path) -> None:
    env = read(folder, visits_per_user=4)

    assert env.context == Ids(3)
    assert env.rounds == 12
    assert sorted(env.contexts(0, 12)) == [0] * 4 + [1] * 4 + [2] * 4


def test_the_reward_is_a_fifth_of_the_rating_and_zero_where_there_is_none(folder: Path) -> None:
    rewards = read(folder).expected_rewards.toarray()

    assert np.allclose(rewards, [[0.8, 0.2, 0], [1.0, 0.5, 0], [0, 0, 0.1]])  # users 3, 7, 9


def test_fitted_rewards_keep_what_is_known_and_fill_the_rest(folder: Path) -> None:
    known = read(folder).expected_rewards.toarray()
    full = read(folder, unrated="fitted").expected_rewards

    assert isinstance(full, np.ndarray)
    assert full.dtype == np.float32
    assert np.allclose(full[known > 0], known[known > 0])
    assert full.min() >= 0.1
    assert full.max() <= 1.0


def test_notes_say_whether_rewards_are_data_or_simulated(folder: Path) -> None:
    assert "all of it is data" in read(folder).notes[0]
    assert "a simulator, not data" in read(folder, unrated="fitted").notes[0]


def test_the_seed_moves_the_order_but_not_the_rewards(folder: Path) -> None:
    one, two = (
        load("movielens", data=folder, seed=seed, unrated="fitted", visits_per_user=20)
        for seed in (1, 2)
    )

    assert isinstance(one, Tabled)
    assert isinstance(two, Tabled)
    assert np.array_equal(one.expected_rewards, two.expected_rewards)
    assert not np.array_equal(one.contexts(0, 60), two.contexts(0, 60))


def test_the_last_of_several_ratings_counts(folder: Path) -> None:
    path = folder / "movielens" / "ml-latest-small" / "ratings.csv"
    path.write_text(RATINGS + "9,40,3.0,2\n", encoding="utf-8")

    assert read(folder).expected_rewards.toarray()[2, 2] == pytest.approx(0.6)


def test_a_rated_movie_without_a_title_is_counted_in_the_notes(folder: Path) -> None:
    path = folder / "movielens" / "ml-latest-small" / "movies.csv"
    path.write_text(MOVIES.replace("40,", "41,"), encoding="utf-8")

    env = read(folder)

    assert env.arms[2].tolist() == [0, 0, 0, 1]
    assert "1 rated movies have no title and no genres." in env.notes


def test_the_older_layout_reads_the_same_and_has_features_of_users(folder: Path) -> None:
    old = folder / "ml-1m"
    old.mkdir()
    lines = [line.replace(",", "::") for line in RATINGS.splitlines()[1:]]
    (old / "ratings.dat").write_text("\n".join(lines), encoding="latin-1")
    (old / "movies.dat").write_text(
        "10::One, The (1995)::Comedy|Drama\n30::Two (2005)::Drama\n40::No Year::\n"
    )
    (old / "users.dat").write_text("3::F::1::10::48067\n7::M::56::16::70072\n9::M::1::10::0\n")

    env = movielens.load(name="movielens", data=folder, seed=0, version="ml-1m")

    new = read(folder)
    assert (env.expected_rewards != new.expected_rewards).nnz == 0
    assert env.context == FeaturesAndIds(Dense(6), Ids(3))
    assert env.instances.dense is not None
    assert env.instances.dense.tolist() == [  # F, M; 1, 56; 10, 16
        [1, 0, 1, 0, 1, 0],
        [0, 1, 0, 1, 0, 1],
        [0, 1, 1, 0, 1, 0],
    ]
    assert np.array_equal(env.arms[:, -2:], new.arms[:, -2:])


def test_a_user_without_a_row_of_users_is_named(folder: Path) -> None:
    old = folder / "ml-1m"
    old.mkdir()
    (old / "ratings.dat").write_text("3::10::5::1\n4::10::5::1\n")
    (old / "movies.dat").write_text("10::One (1995)::Comedy\n")
    (old / "users.dat").write_text("3::F::1::10::48067\n")

    with pytest.raises(DataError, match="user 4 has none"):
        movielens.load(name="movielens", data=folder, seed=0, version="ml-1m")


@pytest.mark.parametrize(
    ("ratings_file", "message"),
    [
        (RATINGS.replace("rating", "stars"), "needs a column rating: found userId, movieId"),
        (RATINGS.splitlines()[0], "needs ratings: it has none"),
        (RATINGS.replace("2.5", "many"), "column rating: line 3 has 'many'"),
        (RATINGS.replace("2.5", "7.5"), "ratings from 0.5 to 5.0: got 7.5"),
        (RATINGS[:-7], "line 6 has 2"),
    ],
)
def test_damaged_ratings_are_refused(ratings_file: str, message: str, folder: Path) -> None:
    path = folder / "movielens" / "ml-latest-small" / "ratings.csv"
    path.write_text(ratings_file, encoding="utf-8")

    with pytest.raises(DataError, match=message):
        read(folder)


def test_a_bad_number_in_a_later_block_names_its_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.features.csv_files._ROWS", 2)
    path = folder / "movielens" / "ml-latest-small" / "ratings.csv"
    path.write_text(RATINGS.replace("0.5", "?"), encoding="utf-8")

    with pytest.raises(DataError, match=r"line 6 has '\?'"):
        read(folder)


def test_a_version_that_is_missing_says_how_to_fetch_it(folder: Path) -> None:
    with pytest.raises(DataError, match="python -m lab data fetch ml-25m"):
        movielens.load(name="movielens", data=folder, seed=0, version="ml-25m")


def test_movies_missing_beside_ratings_are_named(folder: Path) -> None:
    (folder / "movielens" / "ml-latest-small" / "movies.csv").unlink()

    with pytest.raises(DataError, match=r"movies\.csv beside ratings\.csv"):
        read(folder)


def test_options_out_of_range_are_refused(folder: Path) -> None:
    with pytest.raises(SettingError, match="zero, fitted: got 'mean'"):
        read(folder, unrated="mean")
    with pytest.raises(SettingError, match="at least 1: got 0"):
        read(folder, visits_per_user=0)
    with pytest.raises(SettingError, match="Did you mean 'ml-25m'"):
        movielens.load(name="movielens", data=folder, seed=0, version="ml-25M")


def test_a_full_table_that_is_too_large_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ratings, "_LARGEST_BYTES", 35)

    with pytest.raises(SettingError, match="3 users and 3 movies"):
        read(folder, unrated="fitted")


def little(numbers: np.random.Generator, *, users: int = 30, movies: int = 40) -> Ratings:
    """Let users rate half of the movies by a rule of biases and one factor."""
    taste = numbers.normal(size=users)[:, None] * numbers.normal(size=movies)
    stars = 3 + 0.5 * numbers.normal(size=users)[:, None] + 0.5 * taste
    of_user, of_movie = np.nonzero(numbers.random((users, movies)) < 0.5)
    return Ratings(
        np.arange(users),
        np.arange(movies),
        of_user,
        of_movie,
        np.clip(stars, 0.5, 5)[of_user, of_movie],
    )


def test_fitted_ratings_come_close_to_the_rule_behind_them(numbers: np.random.Generator) -> None:
    rated = little(numbers)
    fit = Fit(rank=2, shrinkage=0.1, penalty=0.0)
    chosen = numbers.random(len(rated.stars)) < 0.9
    seen = Ratings(
        rated.users,
        rated.movies,
        rated.of_user[chosen],
        rated.of_movie[chosen],
        rated.stars[chosen],
    )

    stars = fitted_stars(seen, fit)

    wrong = (stars[rated.of_user, rated.of_movie] - rated.stars)[~chosen]
    assert np.sqrt(np.mean(wrong**2)) < 0.4 * rated.stars[~chosen].std()


def test_the_fit_is_the_same_for_any_size_of_blocks(
    numbers: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rated = little(numbers)
    whole = fitted_stars(rated, Fit())

    monkeypatch.setattr(ratings, "_BLOCK", 7)

    assert np.allclose(fitted_stars(rated, Fit()), whole, atol=1e-5)


def test_few_ratings_move_a_movie_less_than_many() -> None:
    users = np.arange(20)
    once = Ratings(
        users,
        np.arange(2),
        np.append(users, 0),
        np.append(np.zeros(20, dtype=np.int64), 1),
        np.append(np.full(20, 3.0), 5.0),
    )

    stars = fitted_stars(once, Fit())

    assert np.all(stars[1:, 1] < 4.0)


REAL_RATINGS = REAL / "movielens-latest-small" / "ml-latest-small" / "ratings.csv"


@pytest.mark.skipif(not REAL_RATINGS.exists(), reason="needs the real files")
def test_the_real_file_has_the_published_sizes() -> None:
    env = load("movielens", data=REAL)

    assert isinstance(env, Tabled)
    assert (env.size, env.rounds, env.context) == (9_724, 6_100, Ids(610))
    assert env.expected_rewards.nnz == 100_836
    assert env.arms.shape == (9_724, 21)
    assert len(read_ratings(REAL_RATINGS).stars) == 100_836
