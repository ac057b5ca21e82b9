"""Open Bandit: logs in the original layout become a log to replay or a simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fastbandit.baselines import RandomBandit
from fastbandit.errors import DataError, InputError, SettingError
from lab.experiments.datasets import load, openbandit
from lab.experiments.environment import Tabled
from lab.experiments.logged import LoggedData
from lab.experiments.replay import replay

USERS = ["u0", "u1", "u2"]


def write_logs(folder: Path, *, rounds: int = 60) -> Path:
    """Write a little of each log, in the layout of the original files."""
    numbers = np.random.default_rng(3)
    for policy in openbandit.POLICIES:
        for campaign in openbandit.CAMPAIGNS:
            home = folder / "obd" / policy / campaign
            home.mkdir(parents=True)
            items = [",item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3"]
            items += [f"{i},{3 - i},{0.5 * i},a{i % 2},b{i},c0" for i in range(4)]
            (home / "item_context.csv").write_text("\n".join(items))
            head = ",timestamp,item_id,position,click,propensity_score,"
            lines = [head + ",".join(f"user_feature_{n}" for n in range(4))]
            for row in range(rounds):
                item, user = numbers.integers(4), USERS[numbers.integers(3)]
                click = int(numbers.random() < (0.9 if item == 2 else 0.2))
                chance = 0.25 if policy == "random" else (0.0001 if row == 0 else 0.9)
                lines.append(f"{row},2019,{item},1,{click},{chance},{user},v,w{row % 2},z")
            (home / f"{campaign}.csv").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_logs(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("campaign", openbandit.CAMPAIGNS)
@pytest.mark.parametrize("policy", openbandit.POLICIES)
def test_every_log_is_read(data: Path, policy: str, campaign: str) -> None:
    log = openbandit.load_log(data=data, campaign=campaign, policy=policy)

    assert (len(log), log.size, log.reward) == (60, 4, "binary")
    assert log.contexts.dense is not None
    assert log.contexts.dense.shape == (60, 3 + 1 + 2 + 1)
    assert np.all(log.contexts.dense.sum(axis=1) == 4)


def test_items_are_sorted_by_id_and_their_number_is_standardised(data: Path) -> None:
    arms = openbandit.load_log(data=data).arms

    assert arms.shape == (4, 1 + 2 + 4 + 1)
    assert arms[:, 0].mean() == pytest.approx(0.0, abs=1e-6)
    assert arms[:, 0].std() == pytest.approx(1.0, abs=1e-6)
    assert np.all(np.diff(arms[:, 0]) < 0)  # the file lists them backwards


def test_the_simulator_has_the_rounds_of_the_log_and_says_what_it_is(data: Path) -> None:
    environment = load("openbandit", data=data, seed=5)

    assert isinstance(environment, Tabled)
    assert (environment.rounds, environment.size, environment.embed_ids, environment.seed) == (
        60,
        4,
        False,
        5,
    )
    assert environment.best_arm(60) == 2
    notes = " | ".join(environment.notes)
    assert "campaign all, logged by random" in notes
    assert "position on the page" in notes
    assert "not observed" in notes


def test_replay_mode_gives_the_log(data: Path) -> None:
    log = load("openbandit", data=data, mode="replay")

    assert isinstance(log, LoggedData)
    replayed = replay(log, RandomBandit(arms=log.arms, reward="binary"), batch=20)
    assert 0 < replayed.matches < 60


def test_a_log_of_wildly_different_propensities_cannot_be_replayed(data: Path) -> None:
    log = openbandit.load_log(data=data, policy="bts")

    with pytest.raises(InputError, match="factor of 9,000"):
        replay(log, RandomBandit(arms=log.arms, reward="binary"), batch=20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"campaign": "children"}, "all, men, women: got 'children'"),
        ({"policy": "ts"}, "random, bts: got 'ts'"),
        ({"mode": "live"}, "simulator, replay: got 'live'"),
    ],
)
def test_unknown_names_are_refused(data: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        load("openbandit", data=data, **options)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"openbandit/obd/random/men/men\.csv"):
        load("openbandit", data=tmp_path, campaign="men")


def test_a_log_without_its_items_is_refused(tmp_path: Path) -> None:
    data = write_logs(tmp_path, rounds=5)
    (data / "obd/random/all/item_context.csv").unlink()

    with pytest.raises(DataError, match=r"needs item_context\.csv beside each log"):
        load("openbandit", data=data)


def test_items_that_are_missing_are_noticed(tmp_path: Path) -> None:
    data = write_logs(tmp_path, rounds=5)
    path = data / "obd/random/all/item_context.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:-2]))

    with pytest.raises(DataError, match="items 0 to 1, once each"):
        load("openbandit", data=data)
