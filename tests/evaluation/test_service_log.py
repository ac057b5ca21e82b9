"""The log of a service becomes rounds, from its folder and from an export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastbandit.errors import (
    DataError,
    LogError,
)
from fastbandit.evaluation import read_rounds
from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.exports import export
from fastbandit.storage.sqlite_log import SqliteLog


def made(id: str, arm: str, **told: Any) -> DecisionMade:
    settings = {"seed": 1, "version": 2, "catalogue": 0, "wait": 10**9, **told}
    return DecisionMade(id, [0.5, 1.5], [arm], [0.1], **settings)


def exported(folder: Path) -> Path:
    """Write the log of a service as Parquet."""
    return export(folder, folder / "out.parquet", "parquet").file


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    log = SqliteLog(tmp_path / "events.db")
    yield log
    log.close()


def test_the_log_of_a_service_is_read(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one", "a", propensities=[0.25]), RewardCame("one", 2.0)])
    log.append([made("two", "b", propensities=[0.5]), RewardCame("two", 1.0)])

    found = read_rounds(tmp_path)

    assert found.contexts.tolist() == [[0.5, 1.5]] * 2
    assert found.rewards.tolist() == [2.0, 1.0]
    assert found.propensities.tolist() == [0.25, 0.5]
    assert list(found.ids or ()) == ["a", "b"]


@pytest.mark.parametrize("is_export", [False, True])
def test_what_cannot_be_used_is_left_out_and_said(
    log: SqliteLog, tmp_path: Path, is_export: bool
) -> None:
    log.append([made("one", "a", propensities=[0.25]), RewardCame("one", 2.0)])
    log.append([made("two", "b"), RewardCame("two", 1.0)])
    log.append([made("three", "b", propensities=[0.5], eligible=["b"]), RewardCame("three", 1.0)])
    log.append([made("four", "b", propensities=[0.5])])

    found = read_rounds(exported(tmp_path) if is_export else tmp_path)

    assert len(found) == 1
    assert sum("left out" in note for note in found.notes) == 3
    assert any("do not say how likely" in note for note in found.notes)


@pytest.mark.parametrize("is_export", [False, True])
def test_rewards_that_came_early_do_not_make_up_for_those_still_waited_for(
    log: SqliteLog, tmp_path: Path, is_export: bool
) -> None:
    for number in range(4):
        log.append([made(str(number), "a", propensities=[0.25])])
        if number != 2:
            log.append([RewardCame(str(number), 1.0)])

    found = read_rounds(exported(tmp_path) if is_export else tmp_path)

    assert len(found) == 2
    assert any("decisions that come with or after" in note for note in found.notes)


def test_an_export_with_slates_of_several_lengths_is_read_like_the_log(
    log: SqliteLog, tmp_path: Path
) -> None:
    for id, arms, told in (
        ("one", ["a"], [0.25]),
        ("two", ["b", "a"], [0.5, 0.1]),
        ("3", ["a"], None),
    ):
        terms: dict[str, Any] = {"seed": 1, "version": 2, "catalogue": 0, "wait": 10**9}
        decision = DecisionMade(id, [0.5, 1.5], arms, [0.1] * len(arms), **terms, propensities=told)
        log.append([decision, RewardCame(id, 1.0)])

    found, ours = read_rounds(exported(tmp_path)), read_rounds(tmp_path)

    assert found.propensities.tolist() == ours.propensities.tolist() == [0.25, 0.5]
    assert found.chosen.tolist() == ours.chosen.tolist() == [0, 1]
    assert any("do not say how likely" in note for note in found.notes)


def test_a_service_that_never_asked_for_propensities_says_what_to_do(
    log: SqliteLog, tmp_path: Path
) -> None:
    log.append([made("one", "a"), RewardCame("one", 1.0)])

    with pytest.raises(LogError, match=r"1 do not say how likely.*Select with propensity: true"):
        read_rounds(tmp_path)


def test_an_export_without_propensities_says_what_to_do(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one", "a"), RewardCame("one", 1.0)])

    with pytest.raises(DataError, match=r"none in 1 rows\. Select with propensity: true"):
        read_rounds(exported(tmp_path))


@pytest.mark.parametrize("format", ["parquet", "dsjson"])
def test_an_export_is_read_like_the_log(log: SqliteLog, tmp_path: Path, format: str) -> None:
    log.append([made("one", "a", propensities=[0.25]), RewardCame("one", 2.0)])
    log.append([made("two", "b", propensities=[0.5]), RewardCame("two", 1.0)])
    out = tmp_path / f"out.{format}"
    export(tmp_path, out, format)

    found, ours = read_rounds(out), read_rounds(tmp_path)

    assert found.contexts.tolist() == ours.contexts.tolist()
    assert found.rewards.tolist() == ours.rewards.tolist()
    assert found.propensities.tolist() == ours.propensities.tolist()
    assert list(found.ids or ()) == list(ours.ids or ())


def test_contexts_by_name_are_encoded_by_the_schema_of_the_version_in_service(
    log: SqliteLog, tmp_path: Path
) -> None:
    from msgspec import structs

    from fastbandit import Bandit, Schema
    from fastbandit.learning.candidates import save_draft
    from fastbandit.storage.snapshot_store import SnapshotStore, nothing_more
    from fastbandit.storage.snapshot_version import Cut

    columns = {"age": "number", "country": {"kind": "category", "levels": ["DE"]}}
    schema = Schema.from_dict({"columns": columns})
    store = SnapshotStore(tmp_path / "snapshots")
    with store.drafting() as draft:
        save_draft(draft, Bandit(ids=["a"], context=schema), reached=nothing_more)
        store.publish(draft, {}, version=0, parent=None, cut=Cut())
    context = {"country": "DE", "age": 3}
    one = structs.replace(made("one", "a", propensities=[0.25]), context=context)
    log.append([one, RewardCame("one", 2.0)])

    assert read_rounds(tmp_path).contexts.tolist() == [schema.encode_one(context).tolist()]
