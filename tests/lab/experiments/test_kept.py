"""Kept rows: what a line holds, which of two rows stays, and what is made again."""

from __future__ import annotations

import json
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_results import play, replayed, runtime

from fastbandit.cli.main import run as run_cli
from fastbandit.cluster.engine import SerialEngine
from fastbandit.errors import DataError
from lab.__main__ import cli
from lab.experiments import kept, suite
from lab.experiments.comparison import bars_of, standings_of
from lab.experiments.kept import keep_rows, newest, not_kept, read_rows
from lab.experiments.report import MARKS, load_results, readme_table, results_page
from lab.experiments.report_tables import bars_table
from lab.experiments.results import REAL_FACES, Key

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "docs" / "results"
KEY = Key("h1", {}, "Random", "default", rounds=30, batch=10, seed=0)
COMMIT = "0123456789abcdef"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "paper.jsonl"


def test_a_row_says_what_the_report_says_of_its_result_file(rows: Path) -> None:
    shares = {"Exhaust TS": 0.8123, "GANBandit TS": 0.7891, "Random": 0.1}
    runs = [play(name, share, seed=n) for name, share in shares.items() for n in (0, 1)]
    others = [runtime("Exhaust TS", commit=COMMIT), replayed("Random", commit=COMMIT)]
    keep_rows(rows, [*runs, *others])

    found = load_results(rows.parent)

    assert bars_table(bars_of(standings_of(found))) == bars_table(bars_of(standings_of(runs)))
    assert {row["kind"] for row in found} == {"play", "replay", "runtime"}


def test_a_line_is_short_and_has_no_more_digits_than_are_shown(rows: Path) -> None:
    run = play("Random", earned=[1.23456789] * 3, qualities=[0.5] * 50)
    keep_rows(rows, [run | {"settings": None, "seconds": 300.0}])

    (line,) = rows.read_text().splitlines()

    assert len(line) < 500
    assert json.loads(line)["earned"] == [1.23457] * 3
    assert not {"qualities", "settings", "seconds"} & set(json.loads(line))


def test_rows_add_up_and_the_same_ones_in_any_order_give_the_same_file(rows: Path) -> None:
    runs = [play(name, seed=n) for name in ("Random", "LinearTS") for n in (0, 2, 10)]
    keep_rows(rows, runs[:3])
    keep_rows(rows, runs[3:])
    other = rows.with_name("other.jsonl")
    keep_rows(other, runs[::-1])

    assert rows.read_text() == other.read_text()
    assert [(row["policy"], row["seed"]) for row in read_rows(rows)] == [
        (name, n) for name in ("LinearTS", "Random") for n in (0, 2, 10)
    ]


def test_a_run_that_is_made_again_replaces_its_row(rows: Path) -> None:
    keep_rows(rows, [play("Random", 0.2), play("Random", 0.3, seed=1)])
    keep_rows(rows, [play("Random", 0.4)])

    assert [sum(row["earned"]) for row in read_rows(rows)] == pytest.approx([12.0, 9.0])


def test_older_code_replaces_no_row_of_newer_code() -> None:
    def commit(name: str) -> str:
        command = ["git", "-C", str(ROOT), "rev-list", "--max-count=2", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True)
        if len(done.stdout.split()) < 2:
            pytest.skip("needs a checkout with two commits")
        return dict(zip(("new", "old"), done.stdout.split(), strict=True))[name]

    new = play("Random", 0.4, commit=commit("new"))
    old = play("Random", 0.2, commit=commit("old"))

    assert newest([new, old]) == newest([old, new]) == [new]


def test_a_note_stands_once_for_a_dataset_and_is_not_lost_with_its_row(rows: Path) -> None:
    runs = [play(name, dataset="bibtex", notes=["159 tags"]) for name in ("LinearTS", "Random")]
    keep_rows(rows, runs)
    assert rows.read_text().count("159 tags") == 1
    keep_rows(rows, [play("Exhaust TS", dataset="bibtex", notes=["159 tags"])])

    assert rows.read_text().count("159 tags") == 1
    assert "159 tags" in results_page(load_results(rows.parent))


def test_every_row_of_real_faces_says_so(rows: Path) -> None:
    keep_rows(rows, [play("Random", dataset="celeba", seed=n, notes=[REAL_FACES]) for n in (0, 1)])

    (standing,) = standings_of(read_rows(rows))
    assert (standing.setting.label, len(standing.runs)) == ("CelebA", 2)


@pytest.mark.parametrize("commit", [None, "0123456789abcdef-dirty"])
def test_rows_of_code_that_no_commit_names_are_refused(commit: str | None, rows: Path) -> None:
    with pytest.raises(DataError, match="committed code only"):
        keep_rows(rows, [play("Random", commit=commit)])

    assert not rows.exists()


def test_rows_of_a_file_of_settings_are_refused(rows: Path) -> None:
    with pytest.raises(DataError, match=r"mine\.toml"):
        keep_rows(rows, [play("Random", preset="mine.toml", settings={"a": 1})])


@pytest.mark.parametrize("line", ["{", "[1]"])
def test_a_damaged_line_is_named_and_the_file_stays(line: str, rows: Path) -> None:
    keep_rows(rows, [play("Random")])
    text = rows.read_text() + line + "\n"
    rows.write_text(text)

    with pytest.raises(DataError, match=r"Line 2 of .*paper\.jsonl"):
        keep_rows(rows, [play("LinearTS")])

    assert rows.read_text() == text


def test_runs_of_this_version_that_are_kept_are_not_made_again(
    rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "code_commit", lambda: COMMIT)
    older = play("Random", seed=1, version="0.0.1")
    keep_rows(rows, [play("Random", version=kept.__version__), older])
    keys = [replace(KEY, seed=seed) for seed in (0, 1, 2)]
    keys += [replace(KEY, batch=5), replace(KEY, options={"arms": 5}), replace(KEY, device="cuda")]

    assert not_kept(rows, keys) == keys[1:]
    assert not_kept(None, keys) == keys


def test_the_command_keeps_a_row_for_each_run_and_goes_on_from_there(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("kept", "results"):
        monkeypatch.setattr(f"lab.experiments.{module}.code_commit", lambda: COMMIT)
    monkeypatch.setattr(suite, "engine_for", lambda *_, **__: nullcontext(SerialEngine()))
    small = tmp_path / "small.toml"
    small.write_text(
        'title = "Small"\nrounds = 20\nbatch = 10\nseeds = 1\npolicies = ["Random"]\n'
        '[[datasets]]\nname = "h1"\n[datasets.options]\narms = 30\n'
    )

    def files_of_run(out: str, seeds: int) -> list[str]:
        words = ["experiment", "run", small, "--keep", rows, "--out", tmp_path / out]
        words += ["--seeds", seeds]
        with pytest.raises(SystemExit) as ended:
            run_cli(cli, [str(word) for word in words], prog_name="lab")
        assert ended.value.code == 0
        return [path.stem for path in sorted((tmp_path / out).rglob("*.json"))]

    assert files_of_run("one", 1) == ["default-t20-b10-seed0"]
    assert files_of_run("two", 2) == ["default-t20-b10-seed1"]
    assert [(row["seed"], row["commit"]) for row in read_rows(rows)] == [(0, COMMIT), (1, COMMIT)]


def test_a_result_file_beside_its_kept_row_counts_once(rows: Path, tmp_path: Path) -> None:
    run: dict[str, Any] = play("Random")
    keep_rows(rows, [run])
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "1.json").write_text(json.dumps(run))

    assert len(load_results(rows.parent, tmp_path / "files")) == 1


# -- the rows of this project


@pytest.mark.skipif(not KEPT.exists(), reason="no rows are kept")
def test_the_pages_are_what_the_kept_rows_say() -> None:
    found = load_results(KEPT)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == results_page(found)
    assert f"{MARKS[0]}\n{readme_table(found)}\n{MARKS[1]}" in readme
