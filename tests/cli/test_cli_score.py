"""The command `score`: what it prints, and how it rejects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes import vectors_of
from little_files import frozen_folder, read_scores, write_files

from fastbandit.cli import main as cli


@pytest.fixture(scope="module")
def frozen(little_training: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return frozen_folder(tmp_path_factory.mktemp("frozen"), arms=vectors_of(40, 3))


def command(*args: object) -> int:
    """Run `fastbandit score` in this process and give its exit status."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["score", *map(str, args)])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_command_scores_and_tells(
    frozen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_files(tmp_path / "contexts")
    words = ("--frozen", frozen, "--contexts", files, "--out", tmp_path / "out", "--workers", 1)
    more = ("--keep", "user", "--columns", "x_*", "--eligible", "[3, 4]", "--rows", 30)

    assert command(*words, *more, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert command(*words, *more) == 0
    again = capsys.readouterr().out

    assert (told["rows"], told["parts"], told["scored"], told["skipped"]) == (90, 4, 90, 0)
    assert "0 rows scored" in again
    assert set(read_scores(tmp_path / "out")["arm"]) <= {3, 4}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("--eligible", "[3"), "--eligible needs JSON"),
        (("--columns", "z"), "needs a column 'z'"),
        (("--address", "auto"), "needs the engine ray"),
    ],
)
def test_what_is_wrong_is_one_line(
    changes: tuple[str, ...],
    words: str,
    frozen: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = write_files(tmp_path / "contexts")

    status = command("--frozen", frozen, "--contexts", files, "--out", tmp_path / "out", *changes)

    (line,) = capsys.readouterr().err.splitlines()
    assert status == 2
    assert words in line
