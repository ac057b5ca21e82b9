"""The commands on keys: create, list and revoke."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastbandit.cli.keys import command as keys_command
from fastbandit.errors import SettingError
from fastbandit.serving.keys import (
    KEYS_FILE,
    SCOPES,
    KeyFault,
    KeyRing,
    Scope,
    create_key,
)

TODAY = date(2026, 3, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / KEYS_FILE


def new_key(path: Path, *scopes: str, expires: date | None = None) -> str:
    text, _ = create_key(path, name="shop", scopes=scopes, expires=expires, today=TODAY)
    return text


def fault(path: Path, presented: str | None, scope: Scope = "select") -> KeyFault | None:
    return KeyRing.load(path).check(presented, scope)


def altered(text: str, place: int) -> str:
    other = "0" if text[place] != "0" else "1"
    return text[:place] + other + text[place + 1 :]


def run(*args: str) -> Result:
    return CliRunner().invoke(keys_command, args)


def test_create_prints_a_key_that_opens(path: Path) -> None:
    done = run(
        "create", "--name", "shop", "--scopes", "select, reward", "--data-dir", str(path.parent)
    )

    assert re.fullmatch(r"fb_[0-9a-f]{8}_[\w-]{43}\n", done.stdout, re.ASCII)
    assert "not shown again" in done.stderr
    assert [fault(path, done.stdout.strip(), scope) for scope in SCOPES] == [
        None,
        None,
        KeyFault.LACKS_SCOPE,
    ]


def test_the_data_folder_is_that_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('[server]\ndata_dir = "there"\n')

    run("create", "--name", "shop", "--scopes", "admin", "--config", "mine.toml")
    run("create", "--name", "shop", "--scopes", "admin")

    assert (tmp_path / "there" / KEYS_FILE).exists()
    assert (tmp_path / "fastbandit-data" / KEYS_FILE).exists()


def test_list_says_all_but_the_secret(path: Path) -> None:
    text = new_key(path, "select", expires=date(2027, 1, 31))

    plain = run("list", "--data-dir", str(path.parent)).output
    told = json.loads(run("list", "--json", "--data-dir", str(path.parent)).output)

    assert told == [
        {
            "id": text[3:11],
            "name": "shop",
            "scopes": ["select"],
            "created": "2026-03-01",
            "expires": "2027-01-31",
        }
    ]
    assert plain == f"{text[3:11]}  shop  select  created 2026-03-01, expires after 2027-01-31\n"


def test_list_says_that_there_are_none(path: Path) -> None:
    done = run("list", "--data-dir", str(path.parent))

    assert done.output == f"There are no keys in {path}.\n"


def test_revoke_takes_a_key_out(path: Path) -> None:
    text = new_key(path, "select")

    done = run("revoke", text[3:11], "--data-dir", str(path.parent))

    assert done.output.startswith(f"Revoked: {text[3:11]}  shop")
    assert fault(path, text) == KeyFault.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"--name": " "}, "The name of a key"),
        ({"--name": "a\x07"}, "The name of a key"),
        ({"--name": "a" * 101}, "1 to 100 printable"),
        ({"--scopes": ","}, "A key needs scopes"),
        ({"--scopes": "select,rewards"}, "Did you mean 'reward'?"),
        ({"--expires": "2020-01-31"}, "needs to expire later: got 2020-01-31"),
    ],
)
def test_a_key_that_cannot_be_is_rejected(path: Path, changes: dict[str, str], said: str) -> None:
    asked = {"--name": "shop", "--scopes": "select", "--data-dir": str(path.parent), **changes}

    done = run("create", *(word for option in asked.items() for word in option))

    assert isinstance(done.exception, SettingError)
    assert said in str(done.exception)
    assert not path.exists()


def test_a_day_that_is_none_is_rejected(path: Path) -> None:
    done = run("create", "--name", "a", "--scopes", "admin", "--expires", "31.1.2027")

    assert done.exit_code == 2
    assert "'31.1.2027'" in done.output


def test_revoke_names_the_nearest_id(path: Path) -> None:
    id = new_key(path, "select")[3:11]

    done = run("revoke", altered(id, 0), "--data-dir", str(path.parent))

    assert f"Did you mean '{id}'?" in str(done.exception)


def test_revoke_needs_a_key(path: Path) -> None:
    done = run("revoke", "00000000", "--data-dir", str(path.parent))

    assert isinstance(done.exception, SettingError)
    assert "holds none" in str(done.exception)
    assert not path.parent.exists()
