"""Files of contexts are scored as the frozen bandit would, whoever does it and however often."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow
import pytest
from fakes import vectors_of
from little_files import (
    CONTEXTS,
    bytes_of,
    frozen_folder,
    load,
    read_scores,
    score,
    write_files,
)
from pyarrow import parquet

from fastbandit import Bandit, Schema
from fastbandit.cluster import scoring
from fastbandit.cluster.local_engine import LocalEngine
from fastbandit.cluster.scoring import MANIFEST, SUCCESS
from fastbandit.errors import (
    DataError,
    FastbanditError,
    SettingError,
    SnapshotError,
    ValueOfColumnError,
)
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids
from fastbandit.noise.philox import decision_seeds
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut

ARMS = vectors_of(40, 3)
SEEDS = decision_seeds(0, 0, len(CONTEXTS))


@pytest.fixture(scope="module")
def frozen(little_training: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return frozen_folder(tmp_path_factory.mktemp("frozen"), arms=ARMS)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_files(tmp_path / "contexts")


# -- what is written


def test_each_row_has_the_arm_that_the_bandit_chooses(
    frozen: Path, files: Path, tmp_path: Path
) -> None:
    scored = score(frozen, files, tmp_path / "out", keep=["user"])

    expected = load(frozen).select(CONTEXTS, seeds=SEEDS)
    found = read_scores(tmp_path / "out")
    assert list(found) == ["user", "row", "arm", "score", "version"]
    assert found["arm"] == expected.arms
    assert found["score"] == pytest.approx(expected.scores[:, 0].tolist())
    assert found["row"] == list(range(90))
    assert found["user"] == [f"u{row}" for row in range(90)]
    assert set(found["version"]) == {1}
    assert (scored.inputs, scored.rows, scored.parts, scored.scored) == (2, 90, 2, 90)
    assert json.loads((tmp_path / "out" / SUCCESS).read_text())["rows"] == 90


@pytest.mark.parametrize("rows", [7, 20, 44])
def test_the_size_of_parts_changes_no_arm(
    rows: int, frozen: Path, files: Path, tmp_path: Path
) -> None:
    score(frozen, files, tmp_path / "out", rows=rows)

    found = read_scores(tmp_path / "out")
    assert found["arm"] == load(frozen).select(CONTEXTS, seeds=SEEDS).arms
    assert found["row"] == list(range(90))


def test_workers_change_no_byte(frozen: Path, files: Path, tmp_path: Path) -> None:
    score(frozen, files, tmp_path / "here", rows=7)

    scored = score(frozen, files, tmp_path / "two", rows=7, engine=LocalEngine(2))

    assert bytes_of(tmp_path / "two") == bytes_of(tmp_path / "here")
    assert (scored.workers, scored.repeated) == (2, 0)


def test_more_arms_come_in_lists_as_long_as_there_are_eligible_ones(
    frozen: Path, files: Path, tmp_path: Path
) -> None:
    score(frozen, files, tmp_path / "out", k=3, eligible=[5, 7])

    found = read_scores(tmp_path / "out")
    assert all(set(arms) == {5, 7} for arms in found["arms"])
    assert {len(scores) for scores in found["scores"]} == {2}


def test_greedy_takes_the_best_whatever_the_seed(frozen: Path, files: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        out = tmp_path / f"out{seed}"
        score(frozen, files, out, explore=False, seed=seed)

    assert read_scores(tmp_path / "out0") == read_scores(tmp_path / "out1")


@pytest.mark.parametrize(
    ("ids", "written"),
    [
        ([f"arm {row}" for row in range(40)], lambda id: id),
        ([1000 + row for row in range(40)], lambda id: id),
        ([f"arm {row}" if row % 2 else row for row in range(40)], json.dumps),
    ],
    ids=["texts", "numbers", "both"],
)
@pytest.mark.usefixtures("little_training")
def test_ids_are_written_as_they_are_or_else_as_json(
    ids: list[Any], written: Any, files: Path, tmp_path: Path
) -> None:
    folder = frozen_folder(tmp_path / "frozen", arms=ARMS, ids=ids)

    score(folder, files, tmp_path / "out")
    score(folder, files, tmp_path / "three", k=3)

    expected = load(folder).select(CONTEXTS, seeds=SEEDS)
    assert read_scores(tmp_path / "out")["arm"] == list(map(written, expected.arms))
    slates = load(folder).select(CONTEXTS, seeds=SEEDS, k=3).arms
    assert read_scores(tmp_path / "three")["arms"] == [list(map(written, arms)) for arms in slates]


def test_a_column_of_lists_is_a_context(frozen: Path, tmp_path: Path) -> None:
    lists = pyarrow.table({"context": CONTEXTS.tolist()})
    parquet.write_table(lists, tmp_path / "lists.parquet")

    score(frozen, tmp_path / "lists.parquet", tmp_path / "out")

    expected = load(frozen).select(CONTEXTS, seeds=SEEDS)
    assert read_scores(tmp_path / "out")["arm"] == expected.arms


def test_contexts_may_be_ids_or_have_one(little_training: None, tmp_path: Path) -> None:
    rows = np.arange(90) % 6
    table = pyarrow.table({"context": rows, **{f"x_{i}": CONTEXTS[:, i] for i in range(4)}})
    parquet.write_table(table, tmp_path / "ids.parquet")
    kinds = {"ids": Ids(6), "both": FeaturesAndIds(Dense(4), Ids(6))}
    contexts: dict[str, Any] = {"ids": rows, "both": (CONTEXTS, rows)}
    settings: dict[str, dict[str, Any]] = {
        "ids": {},
        "both": {"columns": ["x_*"], "ids": "context"},
    }

    for name, kind in kinds.items():
        bandit = tmp_path / f"{name}-bandit"
        make_frozen(bandit, kind, contexts[name])
        out = tmp_path / name
        score(bandit, tmp_path / "ids.parquet", out, **settings[name])

        assert read_scores(out)["arm"] == load(bandit).select(contexts[name], seeds=SEEDS).arms


def make_frozen(folder: Path, kind: Any, contexts: Any) -> None:
    bandit = Bandit(arms=ARMS, context=kind, reward="real", seed=3)
    taken = bandit.select(contexts)
    bandit.update(contexts=contexts, arms=taken.arms, rewards=CONTEXTS[:, 0])
    bandit.freeze().save(folder)


def test_paths_may_be_urls(
    frozen: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    memory = fsspec.filesystem("memory")
    for name, folder in (("frozen", frozen), ("contexts", files)):
        memory.put(str(folder), f"/scoring/{name}", recursive=True)

    url = "memory://scoring"
    score(f"{url}/frozen", f"{url}/contexts/*.parquet", f"{url}/out", keep=["user"])
    memory.get("/scoring/out/", str(tmp_path / "got"), recursive=True)
    memory.rm("/scoring", recursive=True)

    score(frozen, files, tmp_path / "out", keep=["user"])
    assert read_scores(tmp_path / "got") == read_scores(tmp_path / "out")
    assert len(list((tmp_path / "cache/fastbandit/frozen").iterdir())) == 1


def test_the_current_snapshot_of_a_service_decides(
    frozen: Path, files: Path, tmp_path: Path
) -> None:
    store = SnapshotStore(tmp_path / "data" / "snapshots")
    with store.drafting() as draft:
        for part in ("bandit", "frozen"):
            shutil.copytree(frozen, draft / part)
        snapshot = store.publish(draft, {}, version=1, parent=None, cut=Cut())

    for number, folder in enumerate((tmp_path / "data", store.folder, snapshot.folder)):
        scored = score(folder, files, tmp_path / f"out{number}")

        assert scored.arms == 40


# -- going on


def test_only_missing_parts_are_made_again(frozen: Path, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    score(frozen, files, out, rows=10)
    before = bytes_of(out)
    for name in (SUCCESS, "part-000001.parquet", "part-000007.parquet"):
        (out / name).unlink()

    scored = score(frozen, files, out, rows=10)

    assert bytes_of(out) == before
    assert (scored.scored, scored.skipped, scored.repeated) == (20, 70, 0)


@pytest.mark.slow
def test_a_killed_worker_costs_no_more_than_what_it_held(
    frozen: Path, files: Path, tmp_path: Path
) -> None:
    score(frozen, files, tmp_path / "quiet", rows=2)
    killed: list[int] = []

    def kill_one(done: int, steps: int, doing: str) -> None:
        if doing == "Scoring" and done >= 3 and not killed:
            killed.append(active_children()[0].pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    scored = score(
        frozen, files, tmp_path / "out", rows=2, engine=LocalEngine(2), progress=kill_one
    )

    assert killed
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "quiet")
    assert scored.repeated <= 2


@pytest.mark.slow
def test_a_killed_command_is_resumed_where_it_was(
    frozen: Path, files: Path, tmp_path: Path
) -> None:
    score(frozen, files, tmp_path / "quiet", rows=1)
    out = tmp_path / "out"
    message = ["--frozen", frozen, "--contexts", files, "--out", out, "--rows", 1, "--workers", 2]
    command = [sys.executable, "-m", "fastbandit", "score", *map(str, message)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        wait_for(lambda: len(list(out.glob("part-*.parquet"))) >= 3)
        running.kill()
    there = len(list(out.glob("part-*.parquet")))

    scored = score(frozen, files, out, rows=1)

    assert there < 90
    assert bytes_of(out) == bytes_of(tmp_path / "quiet")
    assert scored.skipped >= there
    assert scored.repeated <= 4


def wait_for(is_so: Any) -> None:
    late = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < late
        time.sleep(0.002)


def test_parts_that_were_started_and_not_finished_are_counted(
    frozen: Path, files: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    score(frozen, files, out, rows=10)
    (out / "part-000003.parquet").rename(out / "part-000003.parquet.abcd.part")

    scored = score(frozen, files, out, rows=10)

    assert scored.repeated == 1
    assert not list(out.glob("*.part"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 5}, r"seed was 0 .*and is 5.*--out"),
        ({"k": 2}, r"k was 1 .*and is 2"),
        ({"rows": 11}, r"rows was 10 .*and is 11"),
        ({"eligible": [1, 2]}, r"eligible was null .*and is \[1, 2\]"),
    ],
)
def test_other_settings_are_not_resumed(
    changes: dict[str, Any], message: str, frozen: Path, files: Path, tmp_path: Path
) -> None:
    score(frozen, files, tmp_path / "out", rows=10)

    with pytest.raises(SettingError, match=message):
        score(frozen, files, tmp_path / "out", **{"rows": 10, **changes})


def test_other_contexts_are_not_resumed(frozen: Path, files: Path, tmp_path: Path) -> None:
    score(frozen, files, tmp_path / "out", rows=10)
    os.utime(files / "0.parquet", (0, 0))

    with pytest.raises(SettingError, match="inputs was"):
        score(frozen, files, tmp_path / "out", rows=10)


def test_parts_of_something_else_are_not_resumed(frozen: Path, files: Path, tmp_path: Path) -> None:
    score(frozen, files, tmp_path / "out")
    (tmp_path / "out" / MANIFEST).unlink()

    with pytest.raises(SettingError, match="holds parts and no _manifest"):
        score(frozen, files, tmp_path / "out")


def test_a_worker_rejects_another_bandit(
    frozen: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = iter(["before", "after"])
    monkeypatch.setattr(scoring, "_digest_of", lambda folder: next(digests))

    with pytest.raises(DataError, match="another than the run was started with"):
        score(frozen, files, tmp_path / "out")


# -- by name

VISITS = [
    {"age": None if row % 7 == 0 else row, "city": ("Oslo", "Rome", "Köln, West")[row % 3]}
    for row in range(60)
]


@pytest.fixture(scope="module")
def named(little_training: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a frozen bandit whose contexts have names."""
    bandit = Bandit(arms=ARMS, context=Schema.infer(VISITS), reward="real", seed=3)
    bandit.update(contexts=VISITS, arms=bandit.select(VISITS).arms, rewards=np.arange(60.0))
    folder = tmp_path_factory.mktemp("named")
    bandit.freeze().save(folder)
    return folder


def write_visits(path: Path, columns: Sequence[str], visits: Any = VISITS) -> Path:
    path.parent.mkdir(exist_ok=True)
    cells = {"user": range(len(visits)), **{c: [one[c] for one in visits] for c in columns}}
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.table({c: list(cells[c]) for c in cells}), path)
        return path
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(cells)
        rows.writerows(zip(*cells.values(), strict=True))
    return path


@pytest.mark.parametrize("name", ["c.parquet", "c.csv", "c.csv.gz"])
@pytest.mark.parametrize("columns", [("age", "city"), ("city", "age")])
def test_columns_of_a_schema_are_read_by_name_in_any_order(
    name: str, columns: tuple[str, ...], named: Path, tmp_path: Path
) -> None:
    file = write_visits(tmp_path / name, columns)

    score(named, file, tmp_path / "out", rows=7, keep=["user"])

    found = read_scores(tmp_path / "out")
    assert found["arm"] == load(named).select(VISITS, seeds=decision_seeds(0, 0, 60)).arms
    assert list(map(int, found["user"])) == list(range(60))


def test_workers_read_a_folder_of_csv_by_name(named: Path, tmp_path: Path) -> None:
    write_visits(tmp_path / "visits" / "a.csv", ("age", "city"), VISITS[:30])
    write_visits(tmp_path / "visits" / "b.csv", ("city", "age"), VISITS[30:])

    score(named, tmp_path / "visits", tmp_path / "out", rows=7, engine=LocalEngine(2))

    expected = load(named).select(VISITS, seeds=decision_seeds(0, 0, 60))
    assert read_scores(tmp_path / "out")["arm"] == expected.arms


@pytest.mark.parametrize("name", ["c.parquet", "c.csv"])
def test_a_column_of_the_schema_that_no_file_has_is_named(
    name: str, named: Path, tmp_path: Path
) -> None:
    file = write_visits(tmp_path / name, ["city"])

    with pytest.raises(ValueOfColumnError, match=rf"rows of .*{name} need the column 'age'"):
        score(named, file, tmp_path / "out")


def test_a_column_that_only_some_files_have_is_no_default_in_others(
    named: Path, tmp_path: Path
) -> None:
    write_visits(tmp_path / "visits" / "a.csv", ["city"])
    write_visits(tmp_path / "visits" / "b.csv", ["age", "city"])

    with pytest.raises(DataError, match=r"a\.csv needs a column 'age': it has user, city"):
        score(named, tmp_path / "visits", tmp_path / "out")


def test_a_column_that_is_asked_for_and_not_in_the_schema_is_named(
    named: Path, tmp_path: Path
) -> None:
    file = write_visits(tmp_path / "c.parquet", ["age", "city"])

    with pytest.raises(ValueOfColumnError, match="'user' is not one of them"):
        score(named, file, tmp_path / "out", columns=["age", "city", "user"])


def test_a_value_of_another_kind_is_named_with_its_row(named: Path, tmp_path: Path) -> None:
    wrong = [*VISITS[:20], {"age": "old", "city": "Rome"}, *VISITS[21:]]
    file = write_visits(tmp_path / "c.csv", ["age", "city"], wrong)

    with pytest.raises(DataError, match=r"'old'.*row 4 of the rows of .*c\.csv from 16 on"):
        score(named, file, tmp_path / "out", rows=16)


def test_numbers_without_a_schema_are_read_from_csv_too(frozen: Path, tmp_path: Path) -> None:
    np.savetxt(tmp_path / "c.csv", CONTEXTS, "%.9g", ",", header="x_0,x_1,x_2,x_3", comments="")

    score(frozen, tmp_path / "c.csv", tmp_path / "out")

    assert read_scores(tmp_path / "out")["arm"] == load(frozen).select(CONTEXTS, seeds=SEEDS).arms


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Empty CSV"),
        ("x_0,x_0\n1,2\n", "'x_0' stands twice"),
        ("x_0,x_1,x_2,x_3\n1,2,3\n", "whole CSV file"),
        ("x_0,x_1,x_2,x_3\n1,2,3,four\n", "'x_3' of .* holds string"),
    ],
)
def test_csv_that_is_no_table_of_contexts_is_named(
    text: str, message: str, frozen: Path, tmp_path: Path
) -> None:
    (tmp_path / "c.csv").write_text(text)

    with pytest.raises(DataError, match=message):
        score(frozen, tmp_path / "c.csv", tmp_path / "out")


# -- what is wrong


def table(**columns: Any) -> Any:
    plain = {f"x_{column}": CONTEXTS[:, column].tolist() for column in range(4)}
    return pyarrow.table({**plain, **columns})


def with_value(row: int, value: float | None) -> list[float | None]:
    values: list[float | None] = CONTEXTS[:, 2].tolist()
    values[row] = value
    return values


@pytest.mark.parametrize(
    ("contexts", "settings", "message"),
    [
        (table(), {"columns": ["y_*"]}, r"needs a column 'y_\*': it has x_0, x_1.*--columns"),
        (table(), {"keep": ["user"]}, r"needs a column 'user'"),
        (table(), {"columns": ["x_0", "x_1"]}, r"need 4 numbers each.*x_0, x_1 of .* hold 2"),
        (table(x_4=[1.0] * 90), {}, r"need 4 numbers each.* hold 5"),
        (table(x_2=with_value(17, float("nan"))), {}, r"row 17 of .*c\.parquet has nan in .*'x_2'"),
        (table(x_2=with_value(50, None)), {}, r"row 50 of .*has nan in the column 'x_2'"),
        (table(x_2=["a"] * 90), {}, r"'x_2' of .* holds string.*Encode"),
        (
            pyarrow.table({"context": [[1.0] * 4] * 5 + [[1.0] * 3]}),
            {},
            r"lists of one length: row 5 of .* has 3 numbers",
        ),
        (pyarrow.table({"context": [None, [1.0] * 4]}), {}, r"row 0 of .* has no list"),
        (table(), {"k": 0}, r"k needs to be at least 1: got 0"),
        (table(), {"eligible": {"price": {"<": 3}}}, r"needs columns of the arms"),
        (table(), {"eligible": [77]}, r"rows 0 to 7 of .*77|got 77"),
        (table(arm=[1] * 90), {"keep": ["arm"]}, r"'arm' is one of ours"),
    ],
)
def test_wrong_settings_and_contexts_are_named(
    contexts: Any, settings: dict[str, Any], message: str, frozen: Path, tmp_path: Path
) -> None:
    parquet.write_table(contexts, tmp_path / "c.parquet")

    with pytest.raises(FastbanditError, match=message):
        score(frozen, tmp_path / "c.parquet", tmp_path / "out", rows=20, **settings)

    assert not list(tmp_path.glob("out/part-00*.parquet")) or "row" in message


def test_an_error_of_a_worker_names_the_row(frozen: Path, tmp_path: Path) -> None:
    wrong = CONTEXTS.copy()
    wrong[61, 1] = np.inf
    write_files(tmp_path / "contexts", wrong)

    with pytest.raises(DataError, match=r"row 16 of .*1\.parquet has inf in the column 'x_1'"):
        score(frozen, tmp_path / "contexts", tmp_path / "out", engine=LocalEngine(1))


def test_no_files_and_damaged_ones_are_named(frozen: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"found none at .*nowhere"):
        score(frozen, tmp_path / "nowhere", tmp_path / "out")

    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"bad\.parquet needs to be a whole Parquet file"):
        score(frozen, tmp_path / "bad.parquet", tmp_path / "out")


def test_a_bandit_that_still_learns_is_to_be_frozen_first(files: Path, tmp_path: Path) -> None:
    Bandit(arms=ARMS, context=4).save(tmp_path / "saved")

    with pytest.raises(SnapshotError, match=r"Run `fastbandit freeze .*saved`"):
        score(tmp_path / "saved", files, tmp_path / "out")


def test_scores_among_the_contexts_are_rejected(frozen: Path, files: Path) -> None:
    with pytest.raises(SettingError, match=r"outside of the contexts.*--out"):
        score(frozen, files, files / "out")
