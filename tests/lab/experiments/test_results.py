"""Result files: their paths, what is read back, and what they amount to."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastbandit import __version__
from fastbandit.errors import DataError, SettingError
from fastbandit.features.kinds import Dense
from fastbandit.search.generator import GeneratorSearch
from fastbandit.settings.presets import PartNames, blueprint
from lab.experiments.policies import NAMES
from lab.experiments.results import (
    FEW_ARMS,
    Key,
    read_results,
    setting_name,
    summarise,
    summarise_replays,
    training_ratios,
    write_beside,
    write_result,
)
from lab.experiments.tables import between_marks, table

KEY = Key("h1", {"dim": 4, "arms": 100}, "Random", "default", rounds=20, batch=10, seed=0)
PLAYED: dict[str, Any] = {
    "arms": 100,
    "earned": [4.0, 4.0],
    "best": [5.0, 5.0],
    "quality": None,
    "qualities": [],
    "evaluations": 0.0,
    "lookups": 0.0,
    "select_seconds": 0.001,
    "update_seconds": 0.5,
    "index": None,
    "seconds": 1.0,
    "notes": [],
}


def played(policy: str, *, seed: int = 0, earned: float = 8.0, **more: Any) -> dict[str, Any]:
    key: dict[str, Any] = {
        "dataset": "h1",
        "options": {"dim": 4},
        "preset": "default",
        "device": "cpu",
    }
    key |= {"policy": policy, "seed": seed, "rounds": 20, "batch": 10}
    halves = [earned / 2, earned / 2]
    return {"format": 1, "kind": "play", **key, **PLAYED, "earned": halves, **more}


# -- paths

datasets = st.sampled_from(["h1", "h1-dim4", "the-movies", "The-Movies", "a"]) | st.text(max_size=3)
names = st.sampled_from(["a", "a1", "a_", "A", "dim", "dim4"]) | st.text(max_size=3)
values = st.sampled_from([1, 11, -1, 1.0, 1.5, True, "1", "true", "x", "X", "x-a1"]) | st.text()
keys = st.builds(
    Key,
    dataset=datasets,
    options=st.dictionaries(names, values, max_size=2),
    policy=st.sampled_from([*NAMES, "random", "gp-ucb", "GP UCB"]) | st.text(max_size=3),
    preset=st.sampled_from(["default", "Default", "a/default.toml", "b/default.toml"]),
    rounds=st.sampled_from([1, 11]),
    batch=st.sampled_from([1, 11]),
    seed=st.sampled_from([0, 1, 11]),
    device=st.sampled_from(["cpu", "cuda", "cuda:0", "cuda0", "CUDA"]),
)


def path_of(key: Key) -> str:
    return str(key.path(Path())).lower()  # some file systems know no upper case


@given(datasets, datasets, st.lists(st.dictionaries(names, values, max_size=2), max_size=20))
def test_two_settings_never_share_a_path(one: str, two: str, options: list[dict[str, Any]]) -> None:
    seen: dict[str, tuple[str, dict[str, Any]]] = {}
    for setting in [
        (name, some_options) for name in (one, two) for some_options in ({}, {"a": 11}, *options)
    ]:
        assert seen.setdefault(setting_name(*setting).lower(), setting) == setting


@given(keys, keys)
def test_two_keys_never_share_a_path(one: Key, two: Key) -> None:
    assert one == two or path_of(one) != path_of(two)


@given(keys, st.data())
def test_a_key_that_differs_in_one_thing_has_another_path(key: Key, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([field.name for field in fields(Key)]))
    other = replace(key, **{name: getattr(data.draw(keys), name)})

    assert key == other or path_of(key) != path_of(other)


@given(keys)
def test_a_path_is_made_of_safe_characters_in_three_parts(key: Key) -> None:
    parts = key.path(Path()).parts

    assert len(parts) == 3
    assert all(re.fullmatch(r"[a-z0-9._=-]{1,120}", part) for part in parts)


def test_a_path_reads_as_its_key() -> None:
    path = replace(KEY, policy="GANBandit TS", device="cuda:1").path(Path("out"))

    folder = "out/h1-arms100-dim4/ganbandit-ts"
    assert path.as_posix() == f"{folder}/default-t20-b10-seed0-cuda1.json"
    assert setting_name("openbandit", {"mode": "replay", "noise": 0.5}) == (
        "openbandit-mode=replay-noise0.5"
    )


def test_the_order_of_options_makes_no_difference() -> None:
    reordered = replace(KEY, options={"arms": 100, "dim": 4})

    assert (reordered, hash(reordered)) == (KEY, hash(KEY))
    assert reordered.path(Path()) == KEY.path(Path())


def test_all_policies_have_folders_of_their_own() -> None:
    folders = {replace(KEY, policy=name).path(Path()).parent for name in NAMES}

    assert len(folders) == len(NAMES)


# -- files


def test_a_result_is_read_back_with_its_key_and_the_version_of_the_code(tmp_path: Path) -> None:
    written = write_result(KEY.path(tmp_path), "play", KEY, PLAYED)

    (read,) = read_results(tmp_path)
    assert read == written
    assert read["options"] == {"arms": 100, "dim": 4}
    assert (read["format"], read["kind"], read["version"]) == (1, "play", __version__)
    assert read["commit"] is None or re.fullmatch(r"[0-9a-f]{40}(-dirty)?", read["commit"])


def test_numbers_that_json_does_not_know_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_result(KEY.path(tmp_path), "play", KEY, {"quality": float("nan")})

    assert not list(tmp_path.rglob("*.*"))


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()

    with pytest.raises(OSError, match="taken"):
        write_beside(tmp_path / "taken", "text")

    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_results_of_other_kinds_are_passed_through(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "x.json").write_text('{"format": 1, "kind": "scaling"}')
    (tmp_path / "notes.txt").write_text("not a result")

    results = read_results(tmp_path)

    assert [result["kind"] for result in results] == ["scaling"]
    assert summarise(results) == summarise_replays(results) == training_ratios(results) == []


@pytest.mark.parametrize("text", ['{"format": 1, "ki', "[]", '{"format": 2}', '{"share": 0.5}'])
def test_a_file_that_is_no_result_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(text)

    with pytest.raises(DataError, match=r"odd\.json"):
        read_results(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        read_results(tmp_path / "nowhere")


# -- over seeds


def test_shares_are_averaged_over_seeds() -> None:
    (row,) = summarise([played("Random", seed=0, earned=6.0), played("Random", seed=1)])

    assert row["share"] == pytest.approx(0.7)
    assert row["share_std"] == pytest.approx(0.1)
    assert (row["seeds"], row["of_exhaust"], row["quality"]) == (2, None, None)
    assert (row["select_seconds"], row["update_seconds"]) == (0.001, 0.5)


def test_a_policy_is_compared_with_exhaust_on_the_seeds_that_both_have() -> None:
    exhaust = [played("Exhaust TS", seed=0, earned=8.0)]
    other = [played("Exhaust UCB", seed=0, earned=1.0)]
    gan = [played("GANBandit TS", seed=seed, earned=6.0 - 5 * seed) for seed in range(2)]

    rows = {row["policy"]: row for row in summarise([*exhaust, *other, *gan])}

    assert rows["GANBandit TS"]["of_exhaust"] == pytest.approx(0.75)
    assert rows["Exhaust TS"]["of_exhaust"] == pytest.approx(1.0)


def test_the_lowest_quality_of_all_seeds_counts() -> None:
    runs = [played("GANBandit TS", seed=seed, quality=q) for seed, q in enumerate((0.0, 0.9))]

    (row,) = summarise(runs)

    assert (row["quality"], row["lowest_quality"]) == (pytest.approx(0.45), 0.0)


@pytest.mark.parametrize(
    "more", [{"rounds": 30}, {"batch": 5}, {"preset": "paper"}, {"device": "cuda"}, {"options": {}}]
)
def test_runs_that_differ_in_more_than_the_seed_are_separate(more: dict[str, Any]) -> None:
    assert len(summarise([played("Random"), played("Random", seed=1, **more)])) == 2


def test_datasets_come_in_order_of_their_numbers_and_policies_in_that_of_the_paper() -> None:
    runs = [played(name, options={"dim": dim}) for dim in (16, 4) for name in NAMES[:3][::-1]]

    rows = [(row["options"]["dim"], row["policy"]) for row in summarise(runs)]

    assert rows == [(dim, name) for dim in (4, 16) for name in NAMES[:3]]


def test_an_environment_without_reward_has_no_share() -> None:
    (row,) = summarise([played("Random", best=[0.0, 0.0])])

    assert row["share"] is None
    assert "| Random | 1 | – |" in table([played("Random", best=[0.0, 0.0])])


# -- words


def test_few_arms_are_those_that_the_product_scans_by_default() -> None:
    built = blueprint(PartNames(), context=Dense(4), arm=Dense(4), reward="binary")

    assert isinstance(built.search, GeneratorSearch)
    assert built.search.exhaustive_up_to == FEW_ARMS


def test_few_arms_that_were_all_scored_are_said_to_be_scanned() -> None:
    run = played("GANBandit TS", quality=1.0, evaluations=538.0, dataset="celeba", options={})

    text = table([run])

    assert "| default | drawn faces | GANBandit TS | 1 | 0.800 ± 0.000 |" in text
    assert "| scanned | scanned | scanned | 538 |" in text


def test_a_simulator_is_said_to_be_one() -> None:
    assert "| openbandit (simulator) |" in table(
        [played("Random", dataset="openbandit", options={})]
    )


def test_the_table_has_plays_replays_and_training_times() -> None:
    replayed = {**played("LinearTS"), "kind": "replay", "matches": 7, "mean": 0.25}
    replayed |= {"low": 0.1, "high": None, "curve": []}
    timed = {**played("Training time"), "kind": "training", "ratios": {"TS": 2.0, "UCB": 3.0}}

    text = table([played("Random"), replayed, timed])

    assert (
        "| default | h1-dim4 | Random | 1 | 0.800 ± 0.000 | – | – | – | 0 | 0.0 | 1.000 |" in text
    )
    assert "| default | h1-dim4 | LinearTS | 1 | 0.25000 | 0.10000 | – | 7 |" in text
    assert "| default | h1-dim4 | 2.00 | 3.00 |" in text


def test_fresh_results_replace_old_ones_between_the_marks() -> None:
    marks = ("<!-- results -->", "<!-- end -->")

    fresh = between_marks(f"before\n{marks[0]}\nold\n{marks[1]}\nafter\n", "new", marks=marks)

    assert fresh == f"before\n{marks[0]}\nnew\n{marks[1]}\nafter\n"
    with pytest.raises(SettingError, match="in this order"):
        between_marks("no marks", "new", marks=marks)


def test_a_result_is_plain_json(tmp_path: Path) -> None:
    path = KEY.path(tmp_path)
    write_result(path, "play", KEY, PLAYED)

    assert json.loads(path.read_text())["earned"] == [4.0, 4.0]
