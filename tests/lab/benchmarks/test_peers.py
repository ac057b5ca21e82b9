"""Peers alternate in processes of their own, and are compared by medians."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit.errors import SettingError
from lab.benchmarks import peers as bench
from lab.benchmarks.peer_libraries import (
    ASKED,
    LEARNED,
    OURS,
    PEERS,
    Decide,
    Peer,
    Task,
    drawn,
    numpy_blocks,
    numpy_plain,
    task_of,
    torch_sweep,
    tower_of,
    two_towers,
    vw_examples,
)
from lab.benchmarks.peers import (
    Limits,
    Row,
    alternate,
    decide_for,
    footnotes,
    measure_peers,
    peers_command,
    rows_of,
    worded,
)

HASTY = Limits(seconds=0.01, round_seconds=0.005)


def choose_the_first(task: Task) -> Decide:
    return lambda number: 0


def choose_nothing(task: Task) -> Decide:
    raise ValueError("no arms for me")


def choose_once(task: Task) -> Decide:
    def decide(number: int) -> int:
        if number > 1:
            raise ValueError("tired")
        return 0

    return decide


def never_end(task: Task) -> Decide:
    return lambda number: max(count())


def fake(name: str, make: Callable[[Task], Decide], needs: str = "numpy") -> Peer:
    return Peer(name, name, make, needs, needs)


def peer_called(name: str) -> Peer:
    return next(peer for peer in PEERS if peer.name == name)


def steady(seconds: float, log: list[str], name: str) -> bench.Round:
    def run_round(asked: float) -> list[float] | str:
        log.append(name)
        return [seconds]

    return run_round


# -- rows


def test_a_row_holds_the_median_in_microseconds_and_its_ratio_to_ours() -> None:
    taken = {OURS: [1e-6, 2e-6, 90e-6], "vw": [50e-6, 10e-6, 30e-6]}

    rows = rows_of(taken, {OURS: "a", "vw": "b"}, arms=10, dim=2)

    assert [row.us for row in rows] == pytest.approx([2.0, 30.0])
    assert [row.ratio for row in rows] == pytest.approx([1.0, 15.0])


def test_a_peer_without_times_has_neither_median_nor_ratio() -> None:
    rows = rows_of({OURS: [1e-6], "vw": []}, {OURS: "", "vw": "late", "numpy": "no"}, arms=1, dim=1)

    assert [(row.us, row.ratio) for row in rows[1:]] == [(None, None), (None, None)]


def test_without_ours_there_are_no_ratios() -> None:
    (row,) = rows_of({"vw": [1e-6]}, {"vw": ""}, arms=1, dim=1)

    assert row.us == pytest.approx(1.0)
    assert row.ratio is None


def test_a_note_that_holds_for_all_numbers_of_arms_is_said_once() -> None:
    rows = [
        Row("vw", 10, 2, 1.0, 1.0, "same"),
        Row("x", 10, 2, 1.0, 1.0, "quick"),
        Row("vw", 20, 2, 1.0, 1.0, "same"),
        Row("x", 20, 2, None, None, "left out"),
    ]

    assert footnotes(rows) == [
        "Vowpal Wabbit SquareCB: same",
        "x, 10 arms: quick",
        "x, 20 arms: left out",
    ]


@pytest.mark.parametrize(
    ("number", "words"), [(None, "–"), (3.14159, "3.14"), (1234.5, "1,234"), (0.05, "0.05")]
)
def test_numbers_are_short(number: float | None, words: str) -> None:
    assert worded(number) == words


# -- alternation


def test_peers_alternate_until_each_had_its_time() -> None:
    log: list[str] = []
    rounds = {"a": steady(1.0, log, "a"), "b": steady(2.0, log, "b")}

    taken, stopped = alternate(rounds, seconds=4.0)

    assert log == ["a", "b", "a", "b", "a", "a"]
    assert taken == {"a": [1.0] * 4, "b": [2.0] * 2}
    assert stopped == {}


def test_a_peer_that_stops_early_lets_the_others_go_on() -> None:
    log: list[str] = []
    rounds: dict[str, bench.Round] = {"a": lambda seconds: "broken", "b": steady(1.0, log, "b")}

    taken, stopped = alternate(rounds, seconds=2.0)

    assert taken["b"] == [1.0, 1.0]
    assert stopped == {"a": "broken"}


def test_a_round_never_asks_for_more_than_is_left() -> None:
    asked: list[float] = []

    def run_round(seconds: float) -> list[float]:
        asked.append(seconds)
        return [seconds]

    alternate({"a": run_round}, seconds=0.5, round_seconds=0.2)

    assert asked == pytest.approx([0.2, 0.2, 0.1])


def test_a_round_times_each_decision_by_itself() -> None:
    ticks = iter([0.0, 1.0, 3.0, 6.0])
    numbers: list[int] = []

    def decide(number: int) -> int:
        numbers.append(number)
        return 0

    assert decide_for(decide, 5.0, first=7, clock=lambda: next(ticks)) == [1.0, 2.0, 3.0]
    assert numbers == [7, 8, 9]


def test_a_round_of_no_time_is_one_decision() -> None:
    assert len(decide_for(lambda number: 0, 0.0, first=0)) == 1


# -- processes


def test_peers_decide_in_processes_of_their_own() -> None:
    peers = [fake(OURS, choose_the_first), fake("other", choose_the_first)]

    rows = measure_peers(peers, arms=5, dim=2, limits=HASTY)

    assert [row.peer for row in rows] == [OURS, "other"]
    assert all(row.us is not None and row.us > 0 for row in rows)
    assert rows[0].ratio == 1.0


def test_a_peer_that_is_not_installed_says_how_to_install_it() -> None:
    (row,) = measure_peers([fake("absent", choose_the_first, "no_such_module")], arms=5, dim=2)

    assert row.us is None
    assert row.note == "not installed: pip install 'fastbandit[peers]'"


def test_a_peer_that_fails_is_noted_and_the_others_are_timed() -> None:
    makers = {"broken": choose_nothing, "tired": choose_once, "fine": choose_the_first}

    rows = measure_peers([fake(*pair) for pair in makers.items()], arms=5, dim=2, limits=HASTY)

    assert [row.us is None for row in rows] == [True, True, False]
    assert rows[0].note.startswith("failed: ValueError: no arms for me")
    assert rows[1].note.startswith("failed: ValueError: tired")


def test_a_peer_that_is_too_slow_is_left_out() -> None:
    limits = replace(HASTY, build=0.0)

    (row,) = measure_peers([fake("slow", never_end)], arms=5, dim=2, limits=limits)

    assert row.us is None
    assert row.note == "left out: building takes over 0 s"


# -- what peers are given, and what they make of it


def test_a_task_depends_on_its_seed_alone() -> None:
    task, again, other = task_of(9, 3), task_of(9, 3), task_of(9, 3, seed=1)

    assert np.array_equal(task.rows, again.rows)
    assert np.array_equal(task.rewards, again.rewards)
    assert not np.array_equal(task.rows, other.rows)
    assert task.arms.shape == (9, 3)
    assert task.asked.shape == (ASKED, 3)
    assert set(task.rows) == set(range(9))


@pytest.mark.usefixtures("little_training")
def test_the_numpy_plains_choose_as_the_exhaustive_search_of_the_torch_policy_does() -> None:
    task = task_of(200, 3)

    decided = [make(task) for make in (torch_sweep, numpy_plain, numpy_blocks)]

    rows = [[decide(number) for number in range(ASKED)] for decide in decided]
    assert rows[0] == rows[1] == rows[2]
    assert len(set(rows[0])) > 1


@pytest.mark.usefixtures("little_training")
def test_ours_gives_an_arm_of_the_catalogue() -> None:
    decide = peer_called(OURS).make(task_of(50, 3))

    assert all(0 <= decide(number) < 50 for number in range(3))


def test_two_towers_find_the_largest_dot_product() -> None:
    task = task_of(100, 3)
    decide = two_towers(task)

    best = (task.asked @ tower_of(task) @ task.arms.T).argmax(1)

    assert np.mean([decide(number) == best[number] for number in range(ASKED)]) > 0.9


def test_a_tower_learns_rewards_that_are_bilinear() -> None:
    task = task_of(100, 3)
    known = np.arange(9.0).reshape(3, 3)
    rewards = np.einsum("nd,de,ne->n", task.contexts, known, task.arms[task.rows])

    tower = tower_of(replace(task, rewards=rewards), penalty=1e-6)

    assert tower == pytest.approx(known, abs=1e-3)


@pytest.mark.parametrize(("uniform", "row"), [(0.1, 0), (0.3, 2), (0.99, 2), (1.0, 2)])
def test_an_arm_is_drawn_by_its_probability(uniform: float, row: int) -> None:
    assert drawn(np.array([0.25, 0.0, 0.75]), uniform) == row


def test_vowpal_wabbit_learns_the_cost_of_the_arm_that_was_tried() -> None:
    task = task_of(20, 1)
    task = replace(task, rewards=np.full(LEARNED, 0.5), rows=np.full(LEARNED, 19))
    lines = [f"|a {row}" for row in range(20)]

    example = vw_examples(task, lines)[0]

    assert example[0].startswith("shared |u 0:")
    assert example[1] == "0:-0.5:0.1 |a 19"
    assert example[2:4] == ["|a 0", "|a 1"]
    assert len(example) == 11


@pytest.mark.parametrize("name", ["vw", "vw-large", "mabwiser", "contextualbandits"])
@pytest.mark.filterwarnings("default")
def test_other_libraries_choose_an_arm_of_the_catalogue(name: str) -> None:
    peer = peer_called(name)
    pytest.importorskip(peer.needs)

    decide = peer.make(task_of(30, 4))

    rows = [decide(number) for number in range(20)]
    assert all(0 <= row < 30 for row in rows)
    assert len(set(rows)) > 1


# -- the command


def test_the_command_prints_rows_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "PEERS", (fake("absent", choose_the_first, "no_such_module"),))

    done = CliRunner().invoke(peers_command, ["--arms", "5,3", "--dim", "2", "--json"])

    note = "not installed: pip install 'fastbandit[peers]'"
    assert json.loads(done.stdout) == [
        {"peer": "absent", "arms": arms, "dim": 2, "us": None, "ratio": None, "note": note}
        for arms in (3, 5)
    ]


def test_the_command_prints_a_table_with_the_notes_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "PEERS", (fake("absent", choose_the_first, "no_such_module"),))

    done = CliRunner().invoke(peers_command, ["--arms", "3000"])

    assert "3,000" in done.stdout
    assert "absent: not installed: pip install 'fastbandit[peers]'" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(["--peers", "vww"], "vw"), (["--arms", "ten"], "'ten'"), (["--arms", "0"], "'0'")],
)
def test_a_wrong_option_is_refused_with_a_hint(arguments: list[str], word: str) -> None:
    done = CliRunner().invoke(peers_command, arguments)

    assert isinstance(done.exception, SettingError)
    assert word in str(done.exception)
