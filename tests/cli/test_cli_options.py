"""The options that commands on a service share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastbandit.cli.options import print_json, read_service, split_names, split_texts, warn


def test_a_data_folder_goes_before_that_of_the_settings(tmp_path: Path) -> None:
    settings = tmp_path / "own.toml"
    settings.write_text('[server]\ndata_dir = "there"\n')

    assert read_service(settings).server.data_dir == "there"
    assert read_service(settings, Path("here")).server.data_dir == "here"


def test_without_a_name_the_settings_are_those_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fastbandit.toml").write_text("[server]\nport = 9001\n")

    assert read_service(None).server.port == 9001


def test_notes_go_to_stderr_and_json_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "é"})
    warn("Beware.")

    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"name": "é"}
    assert "é" in printed.out
    assert "Beware." in printed.err


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("Oslo,Rome", ["Oslo", "Rome"]),
        ('Oslo,"Rome, Italy"', ["Oslo", "Rome, Italy"]),
        ("Oslo,Rome, Italy", ["Oslo", "Rome, Italy"]),  # what a shell leaves of the same
        ('Oslo,"a ""b"", c",Rome', ["Oslo", 'a "b", c', "Rome"]),
        ('"a,b",c', ["a,b", "c"]),
        ("", []),
    ],
)
def test_a_text_may_hold_commas(text: str, texts: list[str]) -> None:
    assert split_texts(text) == texts


@pytest.mark.parametrize(
    ("text", "names"),
    [("age, income,", ["age", "income"]), ('age,"income, net"', ["age", "income, net"])],
)
def test_a_name_may_hold_commas(text: str, names: list[str]) -> None:
    assert split_names(text) == names
