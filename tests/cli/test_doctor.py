"""The doctor finds what is broken, slow or missing, and says what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from little_versions import publish

from fastbandit.cli import doctor as checks
from fastbandit.cli.doctor import Finding, fits, needs_in
from fastbandit.cli.doctor import command as doctor_command
from fastbandit.storage.log_schema import VERSION
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import SqliteLog

ROOT = Path(__file__).parents[2]
LINES = [
    "click>=8.1",
    "jaxtyping>=0.2; extra == 'train'",
    'torch>=2.4; extra == "train"',
    "jaxtyping>=0.2; extra == 'onnx'",
    "onnx[some,more]<2,>=1.16; extra == 'onnx'",
    "torch>=2.4; extra == 'onnx'",
    "pytest>=8; extra == 'dev'",
]


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """Return a folder that may be read and not written to, even where tests are run by root."""
    folder, user = Path(tempfile.mkdtemp()), os.geteuid()
    folder.chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    yield folder
    os.seteuid(user)
    shutil.rmtree(folder)


def packages(**versions: str) -> dict[str, Finding]:
    return {one.name: one for one in checks.check_packages(needs_in(LINES), versions.get)}


def doctor(*options: str, blocked: tuple[str, ...] = (), **variables: str) -> dict[str, Any]:
    """Run the doctor in a process of its own, in which some modules are not there."""
    code = (
        f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\n"
        f"from fastbandit.cli.main import main\nmain(['doctor', '--json', *{options!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["healthy"] == (done.returncode == 0)
    return {"states": {one["name"]: one for one in told["findings"]}, **told}


# -- the whole


def test_without_torch_and_apsw_it_says_what_it_can(tmp_path: Path) -> None:
    told = doctor("--data-dir", str(tmp_path), blocked=("torch", "faiss", "apsw"))

    assert "compiles" in told["states"]["numba"]["found"]
    assert told["states"]["compiled code"]["found"].startswith("in ")
    assert "torch" not in told["states"]["threads"]["found"]
    assert (told["states"]["log"]["state"], told["healthy"]) == ("missing", True)


def test_too_many_threads_are_slow_and_not_broken(tmp_path: Path) -> None:
    told = doctor("--data-dir", str(tmp_path), NUMBA_NUM_THREADS="512", NUMBA_DISABLE_JIT="1")

    assert told["states"]["threads"]["state"] == "slow"
    assert told["states"]["numba"]["state"] == "slow"
    assert told["states"]["log"]["found"].startswith("none yet")


def test_settings_name_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "service.toml"
    config.write_text('[server]\ndata_dir = "data"\n')
    monkeypatch.setattr(checks, "examine", lambda *asked: [Finding("asked", "ok", f"{asked}")])

    done = CliRunner().invoke(doctor_command, ["--config", str(config), "--json"])

    assert json.loads(done.output)["findings"][0]["found"] == f"{(Path('data'), '', '')}"


def test_settings_are_found_where_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fastbandit.toml").write_text('[server]\ndata_dir = "data"\n')
    monkeypatch.setattr(checks, "examine", lambda *asked: [Finding("asked", "ok", f"{asked}")])

    done = CliRunner().invoke(doctor_command, ["--json"])

    assert json.loads(done.output)["findings"][0]["found"] == f"{(Path('data'), '', '')}"


def test_a_shared_log_that_is_unavailable_is_broken(tmp_path: Path) -> None:
    findings = checks.examine(tmp_path, "postgresql://me:secret@127.0.0.1:1/none")

    (found,) = [one for one in findings if one.name == "log"]
    assert found.state == "broken"
    assert "127.0.0.1" in found.found
    assert "secret" not in found.found


def test_a_table_says_why_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Finding("disk", "broken", "full", "Nothing fits.", "Free some.")
    monkeypatch.setattr(checks, "examine", lambda *_: [Finding("clock", "ok", "now"), broken])

    done = CliRunner().invoke(doctor_command, [])

    assert done.exit_code == 1
    for words in ("now", "full", "Nothing fits.", "Free some.", "1 ok, 1 broken"):
        assert words in done.output


def test_a_check_that_fails_by_itself_is_a_finding() -> None:
    def check() -> Finding:
        raise OSError("no such device")

    (found,) = checks.made("disk", check)

    assert (found.state, found.found) == ("broken", "OSError: no such device")


# -- packages


def test_all_packages_of_an_extra_are_fine() -> None:
    found = packages(click="8.5", jaxtyping="0.3", torch="2.13.0+cpu", onnx="1.16")

    assert {one.state for one in found.values()} == {"ok"}
    assert set(found) == {"base packages", "extra train", "extra onnx"}


def test_an_extra_of_which_some_packages_are_there_is_missing_the_others() -> None:
    found = packages(click="8.5", onnx="1.16")["extra onnx"]

    assert (found.state, found.found) == ("missing", "not installed: jaxtyping, torch (of 3)")
    assert found.fix == "Run: pip install -U 'fastbandit[onnx]'"


def test_an_old_package_is_broken() -> None:
    found = packages(click="8.5", jaxtyping="0.3", torch="1.9")["extra train"]

    assert (found.state, found.found) == ("broken", "torch 1.9 (needs >=2.4)")


def test_a_package_that_is_too_new_is_broken() -> None:
    found = packages(click="8.5", jaxtyping="0.3", torch="2.4", onnx="2.0")["extra onnx"]

    assert found.state == "broken"


def test_a_base_package_that_is_missing_is_broken() -> None:
    assert packages()["base packages"].state == "broken"


def test_a_version_that_pip_does_not_know_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9.9")

    assert checks.check_fastbandit().state == "broken"


# -- threads and the compiler


@pytest.mark.parametrize(
    ("text", "quota"), [("150000 100000", 1.5), ("max 100000", None), ("odd", None)]
)
def test_a_quota_is_read(text: str, quota: float | None, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(text)

    assert checks.quota_of(tmp_path) == quota


def test_a_quota_below_the_threads_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "cores", lambda: 8)

    found = checks.check_threads({"torch": 8}, 0.5)

    assert found.state == "slow"
    assert "OMP_NUM_THREADS=1" in found.fix
    assert checks.check_threads({"torch": 1}, 0.5).state == "ok"


def test_torch_with_more_threads_than_cores_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: 9)
    monkeypatch.setattr(checks, "cores", lambda: 2)

    assert checks.check_threads({**checks.threads_started(), "numba": 2}, None).state == "slow"


def test_no_folder_for_compiled_code_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unimportable:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("cannot cache function 'decide': no locator available")

    monkeypatch.setitem(sys.modules, "fastbandit.runtime", Unimportable())

    found = checks.check_cache()

    assert found.state == "broken"
    assert "NUMBA_CACHE_DIR" in found.fix


# -- the data folder


def test_a_folder_that_cannot_be_written_to_is_broken(closed_folder: Path) -> None:
    found = checks.check_folder(closed_folder)

    assert found.state == "broken"
    assert "cannot be written to" in found.found


def test_a_folder_that_is_not_there_is_made_later(tmp_path: Path) -> None:
    found = checks.check_folder(tmp_path / "a" / "b")

    assert found == Finding("data folder", "ok", "none yet; a service makes it")


def test_a_folder_that_cannot_be_made_is_broken(closed_folder: Path) -> None:
    found = checks.check_folder(closed_folder / "a" / "b")

    assert found.found == f"{closed_folder} cannot be written to"


def test_a_file_in_place_of_a_folder_is_broken(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"")

    assert checks.check_folder(tmp_path / "data").state == "broken"


def test_a_new_folder_is_looked_at_in_full(tmp_path: Path) -> None:
    findings = checks.examine(tmp_path)[-4:]

    assert [one.name for one in findings] == ["data folder", "file system", "log", "snapshots"]
    assert list(tmp_path.iterdir()) == []


def test_a_log_of_this_version_is_fine(tmp_path: Path) -> None:
    SqliteLog(tmp_path / "events.db").close()

    assert checks.check_log(tmp_path) == Finding("log", "ok", f"version {VERSION}")


def test_a_log_that_cannot_be_written_to_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteLog(tmp_path / "events.db").close()
    monkeypatch.setattr("os.access", lambda *_, **__: False)

    assert checks.check_log(tmp_path).state == "broken"


def test_a_log_of_a_newer_version_is_broken(tmp_path: Path) -> None:
    SqliteLog(tmp_path / "events.db").close()
    connection = connect(tmp_path / "events.db")
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()

    found = checks.check_log(tmp_path)

    assert found.state == "broken"
    assert "Install a newer fastbandit" in found.found


def test_the_copy_of_a_shared_log_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    SqliteLog(tmp_path / "copy" / "events.db").close()

    told = checks.check_log(tmp_path)

    assert told == Finding("log", "ok", f"the copy of a shared log: version {VERSION}")

    (tmp_path / "copy" / "events.db").write_bytes(b"something else" * 100)

    assert "it is copied anew" in checks.check_log(tmp_path).fix


def test_a_log_that_is_no_log_is_broken(tmp_path: Path) -> None:
    (tmp_path / "events.db").write_bytes(b"something else" * 100)

    assert checks.check_log(tmp_path).state == "broken"


def test_a_damaged_snapshot_is_broken_and_names_the_one_that_stands_in(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "snapshots")
    publish(store)
    newest = publish(store)
    whole = checks.check_snapshots(store.folder)
    shutil.rmtree(newest.frozen)

    found = checks.check_snapshots(store.folder)

    assert whole == Finding("snapshots", "ok", "version 1, of 2")
    assert found.state == "broken"
    assert found.fix == f"Run: fastbandit rollback 0 --data-dir {tmp_path}"


@pytest.mark.parametrize(
    ("kind", "state"),
    [("ext4", "ok"), ("", "ok"), ("overlay", "ok"), ("nfs4", "broken"), ("tmpfs", "broken")],
)
def test_a_network_and_memory_are_no_place_for_a_log(kind: str, state: str) -> None:
    assert checks.check_file_system(kind).state == state


def test_the_innermost_mount_has_the_kind(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"a / ext4 rw 0 0\nb {tmp_path} nfs4 rw 0 0\nc {tmp_path}-other tmpfs rw 0 0\n"
    )

    assert checks.kind_of(tmp_path, mounts) == "nfs4"
    assert checks.kind_of(Path("/"), mounts) == "ext4"


@pytest.mark.parametrize(
    ("version", "bounds", "is_fit"),
    [
        ("1.10", ">=1.9", True),
        ("1.9", ">=1.10", False),
        ("2", ">=2.0.0", True),
        ("0.60", ">=0.54,<0.60", False),
        ("0.59.9", ">=0.54,<0.60", True),
        ("2.13.0+cpu", "==2.13.0", True),
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, bounds: str, is_fit: bool) -> None:
    assert fits(version, bounds) == is_fit
