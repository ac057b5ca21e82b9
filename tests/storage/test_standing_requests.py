"""What a client asked for stands in a file until it is done."""

from __future__ import annotations

from pathlib import Path

from fastbandit.storage.standing_requests import RESET_FILE, ask, asked_in, withdraw


def test_the_newest_stands_until_it_is_done(tmp_path: Path) -> None:
    path = tmp_path / RESET_FILE
    assert asked_in(path) is None
    ask(path, seq=5)
    first = asked_in(path)
    ask(path, seq=5)
    second = asked_in(path)

    assert first["seq"] == second["seq"] == 5
    withdraw(path, first)  # another came meanwhile
    assert asked_in(path) == second
    withdraw(path, second)
    assert asked_in(path) is None
