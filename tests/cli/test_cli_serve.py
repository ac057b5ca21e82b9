"""`fastbandit serve`: the whole service as a user starts it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from little_versions import publish

from fastbandit.cli import serve
from fastbandit.errors import SettingError
from fastbandit.settings.service_files import read_config
from fastbandit.storage.log_match import check_log
from fastbandit.storage.shared import open_log, service_store
from fastbandit.storage.snapshot_version import Cut

PATIENCE = 90.0


@contextmanager
def started(*args: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start the command in a folder; give the process and what it says."""
    said = folder / "said.txt"
    with said.open("w") as file:
        command = [sys.executable, "-m", "fastbandit", "serve", *args]
        root = str(Path(__file__).parents[2])
        process = subprocess.Popen(
            command, cwd=folder, stderr=file, text=True, env={**os.environ, "PYTHONPATH": root}
        )
    try:
        yield process, said
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def wait_for(found: Any, process: subprocess.Popen[str], said: Path) -> Any:
    """Ask until there is an answer, or the process has ended."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if answer := found():
            return answer
        time.sleep(0.1)
    raise AssertionError(said.read_text()[-2000:])


@pytest.mark.slow
def test_the_demo_needs_nothing_and_stops_cleanly(tmp_path: Path) -> None:
    with started("--demo", "--port", "0", folder=tmp_path) as (process, said):
        told = re.compile(r"serves on (http://\S+)")
        url = wait_for(lambda: told.search(said.read_text()), process, said)[1]

        def status() -> Any:
            try:
                answer = httpx.get(f"{url}/v1/status").json()
            except httpx.HTTPError:
                return None
            return answer if answer["rewards"].get("counted", 0) > 5 else None

        answer = wait_for(status, process, said)
        assert (answer["ready"], answer["arms"]) == (True, 10_000)
        assert "fastbandit console" in httpx.get(f"{url}/console/").text
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM)
    lines = [line for line in said.read_text().splitlines() if line.startswith("{")]
    assert json.loads(lines[-1])["level"] == "info"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--config", "nowhere.toml"], "nowhere.toml"),
        ([], "context.features"),
    ],
)
def test_what_is_missing_is_one_line(args: list[str], words: str, tmp_path: Path) -> None:
    with started(*args, folder=tmp_path) as (process, said):
        assert process.wait(PATIENCE) == 2
    assert words in said.read_text()
    assert said.read_text().count("\n") == 1


def test_a_port_that_is_taken_is_reported(tmp_path: Path) -> None:
    (tmp_path / "fastbandit.toml").write_text("[context]\nfeatures = 2\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with started("--port", port, "--no-learner", folder=tmp_path) as (process, said):
            assert process.wait(PATIENCE) == 2
    assert "Address already in use" in said.read_text()
    assert said.read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('[arms]\nfile = "nowhere.csv"', "found none at nowhere.csv"),
        ('[arms]\nfile = "arms.csv"\nid = "name"', "a column 'name'"),
        ('[arms]\nfile = "arms.csv"\ncolumns = ["price"]', "a column 'price'"),
        ('[select]\npreset = "nowhere.toml"', "found none at nowhere.toml"),
    ],
)
def test_what_a_service_cannot_start_with_is_one_line(
    settings: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "arms.csv").write_text("id,x\na,1\nb,2\n")
    (tmp_path / "fastbandit.toml").write_text(f"[context]\nfeatures = 2\n{settings}\n")
    with started("--port", "0", folder=tmp_path) as (process, said):
        assert process.wait(PATIENCE) == 2
    assert words in said.read_text()
    assert said.read_text().count("\n") == 1


def test_a_log_is_accepted_by_who_signs_the_versions(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("k" * 16)
    terms = {"server.data_dir": str(tmp_path), "snapshots.signing_key_file": str(tmp_path / "keys")}
    config = read_config(None, overrides=terms)
    store = service_store(config)
    publish(store, cut=Cut(seq=7))
    newest = publish(store, cut=Cut(seq=9))

    serve._accept_log(config)

    with closing(open_log("", tmp_path)) as log:
        check_log(log, store, tmp_path)
    current = store.current()
    assert current is not None
    assert (current.version, current.fell_back) == (newest.version, "")


def test_a_folder_to_serve_from_needs_its_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"--from needs a folder with service\.toml"):
        serve.named_by(None, None, tmp_path)


def test_a_folder_to_serve_from_names_settings_and_data(tmp_path: Path) -> None:
    (tmp_path / "service.toml").touch()

    assert serve.named_by(None, None, tmp_path) == (tmp_path / "service.toml", tmp_path)
