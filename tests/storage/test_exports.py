"""Decisions with their rewards, exported for pandas, for anything, and for Vowpal Wabbit."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from fastbandit.cli.export import command as export_command
from fastbandit.errors import DataError, SettingError
from fastbandit.learning.joining import Joiner
from fastbandit.storage import exports, joined_rows
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.exports import FORMATS, export, format_of
from fastbandit.storage.joined_rows import Bounds
from fastbandit.storage.sqlite_log import SqliteLog

START = 1_767_225_600_000_000  # 2026 begins
WAIT = 10


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock) -> Iterator[SqliteLog]:
    log = SqliteLog(tmp_path / "events.db", clock=clock)
    yield log
    log.close()


def made(id: str, arms: tuple[str | int, ...] = ("a",), **told: Any) -> DecisionMade:
    told = {"seed": 1, "version": 2, "catalogue": 0, "wait": WAIT, "otherwise": -1.0, **told}
    return DecisionMade(id, [0.5, 1.5], list(arms), [0.1] * len(arms), **told)


def lines(tmp_path: Path, format: str = "jsonl", bounds: Bounds | None = None) -> list[Any]:
    out = tmp_path / f"out.{format}"
    export(tmp_path, out, format, bounds=bounds or Bounds())
    return [json.loads(line) for line in out.read_text().splitlines()]


def rewards(tmp_path: Path) -> dict[str, list[float | None]]:
    return {row["decision"]: row["rewards"] for row in lines(tmp_path)}


# -- rewards


def test_a_reward_that_counted_is_told(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one"), RewardCame("one", 0.1), RewardCame("one", 0.2)])

    assert rewards(tmp_path) == {"one": [0.1]}


def test_each_arm_has_a_reward_of_its_own(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one", (7, "7")), RewardCame("one", 0.5, arm="7")])

    assert rewards(tmp_path) == {"one": [None, 0.5]}


def test_a_reward_that_is_waited_for_is_empty(log: SqliteLog, clock: Clock, tmp_path: Path) -> None:
    log.append([made("one")])
    clock.now += WAIT
    log.append([TimePassed()])

    assert rewards(tmp_path) == {"one": [None]}


def test_the_reward_of_a_decision_that_got_none_is_its_default(
    log: SqliteLog, clock: Clock, tmp_path: Path
) -> None:
    log.append([made("one")])
    clock.now += WAIT + 1
    log.append([TimePassed(), RewardCame("one", 1.0)])

    assert rewards(tmp_path) == {"one": [-1.0]}


def test_rewards_that_add_up_are_told_once_the_time_is_over(
    log: SqliteLog, clock: Clock, tmp_path: Path
) -> None:
    log.append([made("one", sums=True)])
    log.append([RewardCame("one", 0.1, part=part) for part in ("x", "y", "z")])

    assert rewards(tmp_path) == {"one": [None]}
    clock.now += WAIT + 1
    log.append([TimePassed()])
    assert rewards(tmp_path) == {"one": [0.1 + 0.1 + 0.1]}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_export_tells_the_rewards_that_are_learned(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, clock = tmp_path_factory.mktemp("data"), Clock()
    log = SqliteLog(folder / "events.db", clock=clock, pragmas=["synchronous = OFF"])
    ids, arms = st.sampled_from("abc"), st.sampled_from(["x", 1])
    decision = st.builds(lambda id, sums: made(id, ("x", 1), sums=sums), ids, st.booleans())
    reward = st.builds(RewardCame, ids, st.sampled_from([0.25, 1.0]), arms, st.sampled_from("pq"))
    events: list[Event] = data.draw(
        st.lists(decision | reward | st.just(TimePassed()), max_size=20)
    )
    for event in events:
        clock.now += data.draw(st.integers(0, 6))
        log.append([event])

    joiner = Joiner()
    for event in log.read():
        joiner.feed(event)
    learned = {(pair.decision, pair.position): pair.reward for pair in joiner.interactions}
    log.close()
    told = {
        (row["seq"], position): reward
        for row in lines(folder)
        for position, reward in enumerate(row["rewards"])
        if reward is not None
    }
    assert told == learned


# -- which decisions


def test_bounds_are_numbers_or_times(log: SqliteLog, clock: Clock, tmp_path: Path) -> None:
    for id in "abc":
        log.append([made(id)])
        clock.now += 1_000_000
    second = timedelta(seconds=1)
    start = datetime(2026, 1, 1, tzinfo=UTC)

    def found(bounds: Bounds) -> str:
        return "".join(row["decision"] for row in lines(tmp_path, bounds=bounds))

    assert found(Bounds()) == "abc"
    assert found(Bounds(since=2)) == "bc"
    assert found(Bounds(since=1, until=3)) == "ab"
    assert found(Bounds(since=start + second)) == "bc"
    assert found(Bounds(since=2, until=start + 2 * second)) == "b"


def test_rows_come_in_batches(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = joined_rows._DECISIONS.replace("LIMIT 5000", "LIMIT 2")
    monkeypatch.setattr(joined_rows, "_DECISIONS", few)
    log.append([made(f"{number}") for number in range(5)])
    log.append([RewardCame(f"{number}", float(number)) for number in range(5)])
    told: list[tuple[int, int]] = []

    export(
        tmp_path,
        tmp_path / "out",
        "jsonl",
        progress=lambda done, steps, doing: told.append((done, steps)),
    )

    assert told == [(2, 5), (4, 5), (5, 5)]
    assert rewards(tmp_path) == {f"{number}": [float(number)] for number in range(5)}


# -- formats


def test_a_line_of_json_holds_all_of_a_decision(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one", propensities=[0.25], eligible={"price": {"<=": 3}}, epsilon=0.1)])
    log.append([RewardCame("one", 1.0)])

    assert lines(tmp_path) == [
        {
            "seq": 1,
            "at": "2026-01-01T00:00:00Z",
            "decision": "one",
            "context": [0.5, 1.5],
            "arms": ["a"],
            "scores": [0.1],
            "reward": 1.0,
            "rewards": [1.0],
            "propensities": [0.25],
            "version": 2,
            "catalogue": 0,
            "seed": 1,
            "explored": True,
            "floor": 0.1,
            "degraded": False,
            "until": "2026-01-01T00:00:00.000010Z",
            "otherwise": -1.0,
            "sums": False,
            "eligible": {"price": {"<=": 3}},
            "decided_by": "bandit",
            "other": None,
        }
    ]


def test_parquet_holds_what_lines_of_json_hold(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(exports, "_ROWS_A_GROUP", 1)
    log.append([made("one", propensities=[0.25], eligible=["a"]), made("two", (7,))])
    log.append([RewardCame("one", 1.0)])

    export(tmp_path, tmp_path / "out.parquet", "parquet")

    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column("at").type.tz == "UTC"
    one, two = table.to_pylist()
    assert one["at"] == datetime(2026, 1, 1, tzinfo=UTC)
    assert (one["arms"], two["arms"]) == (["a"], ["7"])
    assert (one["reward"], two["reward"], two["rewards"]) == (1.0, None, [None])
    assert (one["eligible"], two["propensities"]) == ('["a"]', None)
    assert list(one) == list(lines(tmp_path)[0])


def test_ids_that_are_numbers_stay_numbers_in_parquet(log: SqliteLog, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    log.append([made("one", (7, 8))])

    export(tmp_path, tmp_path / "out.parquet", "parquet")

    assert parquet.read_table(tmp_path / "out.parquet").column("arms").to_pylist() == [[7, 8]]


@pytest.mark.parametrize(("arm", "other"), [(7, 8), (7, "x"), ("7", 8)])
def test_the_arm_of_the_other_is_of_the_kind_of_the_arms(
    arm: str | int, other: str | int, log: SqliteLog, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    log.append([made("one", (arm,), decided_by="baseline", other=other), made("two", (arm,))])

    export(tmp_path, tmp_path / "out.parquet", "parquet")

    one, two = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    kind = int if arm == 7 and other == 8 else str
    assert (one["arms"], one["other"], two["other"]) == ([kind(arm)], kind(other), None)
    assert (one["decided_by"], two["decided_by"]) == ("baseline", "bandit")


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_log_gives_an_empty_file(format: str, log: SqliteLog, tmp_path: Path) -> None:
    assert export(tmp_path, tmp_path / "out", format).rows == 0
    assert (tmp_path / "out").exists()


# -- Vowpal Wabbit


def test_a_line_of_dsjson_labels_the_first_arm(log: SqliteLog, tmp_path: Path) -> None:
    log.append([ArmsChanged(put=[Arm("a", [1.0, 2.0]), Arm("b", [3.0, 4.0])])])
    log.append([made("one", catalogue=1, propensities=[0.25], eligible=["b", "a", "c"])])
    log.append([ArmsChanged(put=[Arm("a", [9.0, 9.0])]), RewardCame("one", 0.5)])

    assert lines(tmp_path, "dsjson") == [
        {
            "_label_cost": -0.5,
            "_label_probability": 0.25,
            "_label_Action": 1,
            "_labelIndex": 0,
            "Timestamp": "2026-01-01T00:00:00Z",
            "Version": "1",
            "EventId": "one",
            "a": [1, 2, 3],
            "c": {
                "context": [0.5, 1.5],
                "_multi": [
                    {"_tag": "a", "arm": {"id": "a"}, "features": [1.0, 2.0]},
                    {"_tag": "b", "arm": {"id": "b"}, "features": [3.0, 4.0]},
                    {"_tag": "c", "arm": {"id": "c"}},
                ],
            },
            "p": [0.25, 0.375, 0.375],
            "VWState": {"m": "2"},
        }
    ]


def test_what_was_chosen_without_exploring_was_certain(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one", ("a", "b"), explored=False), RewardCame("one", 1.0)])

    (line,) = lines(tmp_path, "dsjson")
    assert (line["_label_probability"], line["p"]) == (1.0, [1.0, 0.0])


def test_what_a_baseline_chose_is_certain_only_where_it_says_so(
    log: SqliteLog, tmp_path: Path
) -> None:
    beside: dict[str, Any] = {"explored": False, "decided_by": "baseline", "other": "b"}
    log.append([made("one", **beside), made("two", propensities=[0.5], **beside)])
    log.append([RewardCame("one", 1.0), RewardCame("two", 1.0)])

    (line,) = lines(tmp_path, "dsjson")
    assert (line["EventId"], line["_label_probability"]) == ("two", 0.5)


def test_dsjson_tells_which_decisions_it_leaves_out(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("waits", propensities=[0.5]), made("unsure"), made("sure", explored=False)])
    log.append([RewardCame("unsure", 1.0), RewardCame("sure", 1.0)])

    told = export(tmp_path, tmp_path / "out", "dsjson")

    assert told.rows == 1
    assert told.left_out == {"no reward yet": 1, "no propensity": 1}


def vowpal_wabbit() -> Any:
    """Import Vowpal Wabbit, also from where it was put aside for comparisons."""
    if importlib.util.find_spec("vowpalwabbit") is None:
        pytest.skip("vowpalwabbit is not installed: pip install 'fastbandit[peers]'")
    return pytest.importorskip("vowpalwabbit")


def test_vowpal_wabbit_learns_from_the_lines(log: SqliteLog, tmp_path: Path) -> None:
    library = vowpal_wabbit()
    log.append([ArmsChanged(put=[Arm("good", [1.0, 0.0]), Arm("bad", [0.0, 1.0])])])
    for number in range(100):
        arm = ("good", "bad")[number % 2]
        told = {"catalogue": 1, "propensities": [0.5], "eligible": ["good", "bad"]}
        log.append([made(f"{number}", (arm,), **told)])
        log.append([RewardCame(f"{number}", float(arm == "good"))])
    export(tmp_path, tmp_path / "out", "dsjson")
    learner = library.Workspace("--cb_explore_adf --dsjson --quiet --epsilon 0.1")

    for line in (tmp_path / "out").read_text().splitlines():
        examples = learner.parse(line)
        learner.learn(examples)
        learner.finish_example(examples)

    examples = learner.parse((tmp_path / "out").read_text().splitlines()[1])
    tags = [example.get_tag() for example in examples[1:]]
    likely = dict(zip(tags, learner.predict(examples), strict=True))
    learner.finish_example(examples)
    learner.finish()
    assert likely["good"] > 0.9 > likely["bad"]


# -- errors and the command


def test_an_export_that_fails_leaves_no_file(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one")])

    def stop(done: int, steps: int, doing: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(tmp_path, tmp_path / "out", "jsonl", progress=stop)

    assert not list(tmp_path.glob("out*"))


def test_a_file_that_cannot_be_written_is_an_error(log: SqliteLog, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a file that can be written"):
        export(tmp_path, tmp_path / "no folder" / "out", "jsonl")


def test_an_unknown_format_is_refused(log: SqliteLog, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="got 'xml'"):
        export(tmp_path, tmp_path / "out", "xml")


def test_the_command_writes_and_says_what_it_left_out(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one"), made("two", explored=False), RewardCame("two", 1.0)])
    args = ["--data-dir", str(tmp_path), "--out", str(tmp_path / "out"), "--format", "dsjson"]

    told = CliRunner().invoke(export_command, [*args, "--since", "2025-12-31"])

    assert told.output == f"1 decision\n1 left out: no reward yet\n{tmp_path / 'out'}\n"
    told = CliRunner().invoke(export_command, [*args, "--until", "2", "--json", "--replace"])
    assert json.loads(told.output)["rows"] == 0


@pytest.mark.parametrize(
    ("name", "format"), [("log.csv", None), ("log.jsonl", "parquet"), ("log.txt", None)]
)
def test_a_file_whose_name_is_of_another_format_is_refused(name: str, format: str | None) -> None:
    with pytest.raises(SettingError, match=rf"got --out {name} and .*--format"):
        format_of(Path(name), format)


@pytest.mark.parametrize(
    ("name", "format", "wanted"),
    [("log.jsonl", None, "jsonl"), ("log", None, "parquet"), ("log.txt", "dsjson", "dsjson")],
)
def test_the_name_of_a_file_tells_its_format(name: str, format: str | None, wanted: str) -> None:
    assert format_of(Path(name), format) == wanted


def test_the_command_does_not_write_over_a_file(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one")])
    (tmp_path / "out.jsonl").write_text("mine")
    args = ["--data-dir", str(tmp_path), "--out", str(tmp_path / "out.jsonl")]

    with pytest.raises(SettingError, match=r"out\.jsonl is\. Name another, .*--replace"):
        CliRunner().invoke(export_command, args, catch_exceptions=False)
    assert (tmp_path / "out.jsonl").read_text() == "mine"


def test_a_bound_that_is_neither_number_nor_time_is_refused(tmp_path: Path) -> None:
    args = ["--data-dir", str(tmp_path), "--out", str(tmp_path / "out"), "--since", "yesterday"]

    told = CliRunner().invoke(export_command, args)

    assert "needs an event number, or a time" in str(told.exception)
