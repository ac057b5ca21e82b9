"""The policy behind a log of the Open Bandit data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fastbandit.errors import DataError
from fastbandit.evaluation import evaluate
from lab.estimators.open_bandit import Campaign, check_open_bandit, policy_behind


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def open_bandit(folder: Path, policy: str, arms: list[int]) -> Path:
    home = folder / "obd" / policy / "men"
    home.mkdir(parents=True)
    items = "".join(f"{row},0.{row},a,b,{'c' if row else 'd'}\n" for row in range(2))
    features = ",".join(f"item_feature_{number}" for number in range(4))
    write(home / "item_context.csv", f"item_id,{features}\n{items}")
    users = ",".join(f"user_feature_{number}" for number in range(4))
    rows = "".join(
        f"{arm},{1 + place % 2},{place % 2},0.5,u,v,w,x\n" for place, arm in enumerate(arms)
    )
    write(home / "men.csv", f"item_id,position,click,propensity_score,{users}\n{rows}")
    return home


def test_the_policy_behind_a_log_has_its_shares_at_each_position(tmp_path: Path) -> None:
    by = Campaign.read(open_bandit(tmp_path, "random", [0, 1, 1, 0]))
    judged = Campaign.read(open_bandit(tmp_path, "bts", [0, 1, 0, 1, 1, 1, 0, 1]))

    policy = policy_behind(judged, by)

    # at the first position 0 three times of four, at the second always 1
    assert policy.probability_of(np.zeros(4, dtype=int)) == pytest.approx([0.75, 0, 0.75, 0])
    assert evaluate(by.rounds, policy, estimators=["ips"]).rounds == 4


def test_open_bandit_needs_its_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="openbandit"):
        check_open_bandit(tmp_path)
