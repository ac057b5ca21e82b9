"""Classes as actions with features: the same lines for all, and what each earns."""

from __future__ import annotations

import pytest

from fastbandit.errors import SettingError
from lab.experiments.per_request_actions import cells_of, load, measure

pytest.importorskip("sklearn", reason="scikit-learn is not installed")


def test_lines_are_those_of_the_seed_and_name_the_right_action() -> None:
    first, again = (list(load("digits", rounds=5, seed=3).lines()) for _ in range(2))
    rounds = load("digits", rounds=5, seed=3)

    assert first == again
    for (line, right), label in zip(first, rounds.right, strict=True):
        assert line["c"]["_multi"][right]["_tag"] == f"class{label}"
        assert len({one["_tag"] for one in line["c"]["_multi"]}) == 10


@pytest.mark.parametrize("system", ["fastbandit by ids", "VW squarecb"])
def test_a_system_earns_more_than_random_actions(system: str) -> None:
    if system.startswith("VW"):
        pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed")
    row = measure("wine", system, rounds=300, batch=50, seed=0)

    assert row.last_quarter > 0.5


@pytest.mark.usefixtures("little_training")
def test_actions_are_learned_by_features_too() -> None:
    row = measure("wine", "fastbandit by features", rounds=60, batch=30, seed=0)

    assert (row.rounds, row.system) == (60, "fastbandit by features")
    assert [len(cells) for cells in cells_of([row, row])] == [6]


def test_an_unknown_set_is_rejected() -> None:
    with pytest.raises(SettingError, match="digits"):
        load("iris", rounds=1, seed=0)
