"""Actions that came with requests are learned by their features or by their ids."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from little_actions import lines, write_lines

from fastbandit.adapters.action_logs import read_action_log
from fastbandit.adapters.vowpal_wabbit_arguments import read_arguments
from fastbandit.arms.offers import offer_name
from fastbandit.cli.action_learning import ActionDecisions, better_learned
from fastbandit.cli.log_learning import LogLearning
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.serving.request_arms import offered_to
from fastbandit.serving.schema_guard import arm_schema_of
from fastbandit.serving.schemas import OfferedArm


def priced(path: Path) -> ActionDecisions:
    """A log in which an action costs more from the third decision on."""
    found: list[dict[str, Any]] = list(lines(6))
    for number, one in enumerate(found):
        for action in one["c"]["_multi"]:
            action["j"] = [{"price": 1 if number < 2 else 2}]
    path.write_text("\n".join(json.dumps(one) for one in found))
    return ActionDecisions(read_action_log(path))


def test_the_catalogue_has_each_id_with_the_features_it_had_last(tmp_path: Path) -> None:
    given = priced(tmp_path / "log.json")

    bandit = given.new_bandit(preset="default", seed=0)

    assert (given.arm_count, len(bandit), len(given.log.ids)) == (4, 4, 8)
    assert all("\x1f" in name for name in given.names[:2])
    assert not any("\x1f" in name for name in given.names[2:])


def points_of(bandit: FrozenBandit, ids: list[Any]) -> Any:
    """Return the coordinates of arms of a catalogue."""
    catalogue = bandit.parts[1]
    return catalogue.points_of(catalogue.ids.rows(ids))


def test_what_is_served_is_what_was_learned_and_judged(tmp_path: Path) -> None:
    given = priced(tmp_path / "log.json")
    bandit = given.new_bandit(preset="default", seed=0).freeze()

    for number, offered in enumerate(given.log.offered):
        ids = [given.log.ids[row] for row in offered]
        came = [OfferedArm(given.log.ids[row], given.log.features[row]) for row in offered]
        served, logged = offered_to(bandit, came, arm_schema_of(bandit))
        judged = bandit.offering([given.offer(row) for row in offered])
        assert (points_of(served, ids) == points_of(judged, ids)).all()
        if number < 2:  # with other features than they have last, by which they are known again
            assert given.names[number] in [offer_name(arm.id, arm.features) for arm in logged]
        else:
            assert np.allclose(points_of(served, ids), points_of(bandit, ids), atol=1e-6)
            assert logged == []


def test_by_ids_an_action_is_one_arm_whatever_its_features(tmp_path: Path) -> None:
    log = priced(tmp_path / "log.json").log

    given = ActionDecisions(log, by_id=True)

    assert not any("\x1f" in name for name in given.names)
    assert (given.known_by, ActionDecisions(log).known_by) == ("ids", "features")


def test_namespaces_that_are_ignored_are_columns_that_are_not_used(tmp_path: Path) -> None:
    write_lines(tmp_path / "log.json", 4)
    log = read_action_log(tmp_path / "log.json")

    given = ActionDecisions(log, arguments=read_arguments("--ignore u"))

    assert given.context.names == ("user", "others")
    assert (given.contexts == given.contexts[0]).all()


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, "binary"),
        ({"reward.combine": "sum"}, "real"),
        ({"reward.default": 0.5}, "real"),
        ({"personalizer.enabled": True}, "real"),
    ],
)
def test_rewards_are_binary_unless_settings_make_others(
    tmp_path: Path, settings: dict[str, Any], kind: str
) -> None:
    write_lines(tmp_path / "log.json", 4)

    assert ActionDecisions(read_action_log(tmp_path / "log.json"), settings).reward_kind == kind


@pytest.mark.slow
@pytest.mark.usefixtures("little_training")
def test_what_predicts_better_is_taken(tmp_path: Path) -> None:
    write_lines(tmp_path / "log.json", 200)
    given = ActionDecisions(read_action_log(tmp_path / "log.json"))

    taken, bandit, learned = better_learned(given, LogLearning())

    other = LogLearning().learn(replace(given, by_id=not taken.by_id))[1].checks.loss
    assert learned.checks.loss is not None
    assert other is not None
    assert learned.checks.loss <= other
    assert bandit.version == 1
    assert learned.judged is not None
    assert np.isfinite([one.value for one in learned.judged.estimates]).all()
