"""The command `data` lists, fetches, and shows where files are or how to get them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastbandit.cli.main import cli, main
from fastbandit.errors import DataError, SettingError
from lab.experiments.datasets import command, load
from lab.experiments.datasets.command import data_command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bibtex").mkdir()
    (tmp_path / "bibtex" / "bibtex.arff").touch()
    return tmp_path


def said(*args: object) -> str:
    result = CliRunner().invoke(data_command, [str(arg) for arg in args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_shows_what_is_there_and_how_to_get_the_rest(folder: Path) -> None:
    output = said("list", "--data", folder)

    assert f"7,395 × 159      {folder / 'bibtex' / 'bibtex.arff'}" in output
    assert "missing: python -m lab data fetch movielens" in output
    assert "missing: python -m lab data where celeba" in output
    assert "non-commercial research only" in output


def test_the_list_reads_as_json(folder: Path) -> None:
    found = {entry["name"]: entry for entry in json.loads(said("list", "--json", "--data", folder))}

    assert found["bibtex"]["present"]
    assert found["bibtex"]["path"] == str(folder / "bibtex" / "bibtex.arff")
    assert found["movielens"] == found["movielens"] | {
        "present": False,
        "path": None,
        "rounds": 6100,
        "arms": 9724,
        "can_fetch": True,
    }
    assert not found["the-movies"]["can_fetch"]


def test_the_environment_names_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTBANDIT_DATA", str(folder))

    assert said("where", "bibtex").strip() == str(folder / "bibtex" / "bibtex.arff")


def test_where_says_how_to_get_what_is_missing_and_exits_with_2(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(cli.commands, "data", data_command)

    with pytest.raises(SystemExit) as stopped:
        main(["data", "where", "the-movies", "--data", str(folder)])

    assert stopped.value.code == 2
    assert "Get ratings_small.csv, links_small.csv" in capsys.readouterr().err


def test_fetch_prints_where_the_files_lie(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(name: str, data: Path | None) -> list[Any]:
        return [data, name]

    monkeypatch.setattr(command, "fetch", fetched)

    assert said("fetch", "ml-1m", "--data", folder).split() == [str(folder), "ml-1m"]


def test_fetch_of_what_has_no_download_says_what_to_do(folder: Path) -> None:
    with pytest.raises(DataError, match=r"no plain download\. Get bibtex\.rar"):
        said("fetch", "bibtex", "--data", folder)


def test_a_sample_of_celeba_is_drawn_and_says_that_it_is_generated(tmp_path: Path) -> None:
    output = said("sample", "celeba", "--data", tmp_path, "--identities", 2, "--images", 3)

    assert str(tmp_path / "celeba") in output
    assert "These pictures are generated: they are NOT CelebA" in output
    environment = load("celeba", data=tmp_path, least_images=3)
    assert (environment.rounds, environment.size) == (6, 2)


def test_a_sample_can_be_drawn_again_by_another_seed(tmp_path: Path) -> None:
    listed = tmp_path / "celeba" / "identity_CelebA.txt"
    size = ("--data", tmp_path, "--identities", 2, "--images", 1)
    said("sample", "celeba", *size)
    before = listed.read_text()

    said("sample", "celeba", *size, "--seed", 1)

    assert listed.read_text() != before


@pytest.mark.parametrize(
    "place", ["celeba", "celeba/Anno", "CelebA", "CelebA/Anno", "Anno", "."], ids=str
)
def test_a_sample_never_stands_before_the_real_celeba(place: str, tmp_path: Path) -> None:
    listed = tmp_path / place / "identity_CelebA.txt"
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text("000001.jpg 2880\n")

    with pytest.raises(DataError, match="A sample needs a folder of its own"):
        said("sample", "celeba", "--data", tmp_path)

    assert listed.read_text() == "000001.jpg 2880\n"
    assert len(list(tmp_path.rglob("*.*"))) == 1


def test_only_celeba_has_a_sample(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="needs to be one of celeba: got 'omniglot'"):
        said("sample", "omniglot", "--data", tmp_path)
