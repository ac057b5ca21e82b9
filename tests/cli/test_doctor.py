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

import apsw
import pytest
from click.testing import CliRunner

from fastbandit.cli.doctor import doctor_command
from fastbandit.doctor import (
    Finding,
    compiler,
    data_folder,
    examination,
    installed,
    machine,
    speed,
    threads,
)
from fastbandit.doctor.finding import fine
from fastbandit.doctor.made_up import DIM, draw_network, made_up_bandit
from fastbandit.storage.log_schema import VERSION
from fastbandit.storage.sqlite_log import SqliteLog

ROOT = Path(__file__).parent.parent
LINES = [
    "click>=8.1",
    "jaxtyping>=0.2; extra == 'train'",
    'torch>=2.4; extra == "train"',
    "fastbandit[train]; extra == 'onnx'",
    "onnx<2,>=1.16; extra == 'onnx'",
    "pytest>=8; extra == 'dev'",
]
GIB = 2**30


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """Give a folder that may be read and not written to, even where tests are run by root."""
    folder, user = Path(tempfile.mkdtemp()), os.geteuid()
    folder.chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    yield folder
    os.seteuid(user)
    shutil.rmtree(folder)


def packages(**versions: str) -> dict[str, Finding]:
    found = installed.findings_for(installed.requirements_of(LINES), versions.get)
    return {one.name: one for one in found}


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


def test_without_torch_and_faiss_it_says_what_decisions_cost() -> None:
    told = doctor(blocked=("torch", "faiss", "apsw"))

    assert told["states"]["decisions"]["state"] in ("ok", "slow")
    assert "µs to choose" in told["states"]["decisions"]["found"]
    assert "torch threads" not in told["states"]


def test_too_many_threads_are_slow_and_not_broken(tmp_path: Path) -> None:
    told = doctor("--data-dir", str(tmp_path), OMP_NUM_THREADS="512", NUMBA_DISABLE_JIT="1")

    assert told["states"]["thread variables"]["state"] == "slow"
    assert told["states"]["numba"]["state"] == "slow"
    assert "decisions" not in told["states"]
    assert told["states"]["log"]["found"].startswith("none yet")


def test_a_table_tells_why_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Finding("disk", "broken", "full", "Nothing fits.", "Free some.")
    monkeypatch.setattr(
        "fastbandit.cli.doctor.examine", lambda *_, **__: [fine("clock", "now"), broken]
    )

    done = CliRunner().invoke(doctor_command, [])

    assert done.exit_code == 1
    for words in ("now", "full", "Nothing fits.", "Free some.", "1 ok, 1 broken"):
        assert words in done.output


def test_a_check_that_fails_by_itself_is_a_finding() -> None:
    def check() -> Finding:
        raise OSError("no such device")

    (found,) = examination.made("disk", check)

    assert (found.state, found.found) == ("broken", "OSError: no such device")


def test_decisions_are_not_timed_where_they_would_be_compiled_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiler, "is_kept", lambda folder, source: False)

    (found,) = examination.decisions(is_warming=False)

    assert (found.name, found.state) == ("compiled code", "slow")
    assert found.fix == "Run: fastbandit doctor --warm"


# -- packages


def test_all_packages_of_an_extra_are_fine() -> None:
    found = packages(click="8.5", jaxtyping="0.3", torch="2.13.0+cpu", onnx="1.16")

    assert {one.state for one in found.values()} == {"ok"}
    assert set(found) == {"base packages", "extra train", "extra onnx"}


def test_an_extra_that_asks_for_another_needs_what_that_one_needs() -> None:
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
    assert installed.fits(version, bounds) == is_fit


def test_a_version_that_pip_does_not_know_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9.9")

    assert installed.check_fastbandit().state == "broken"


# -- threads


@pytest.mark.parametrize(
    ("text", "quota"), [("150000 100000", 1.5), ("max 100000", None), ("odd", None)]
)
def test_a_quota_is_read(text: str, quota: float | None, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(text)

    assert threads.quota_of(tmp_path) == quota


def test_a_quota_below_the_cores_is_slow() -> None:
    found = threads.check_cores(0.5)

    assert found.state == "slow"
    assert "OMP_NUM_THREADS=1" in found.fix


@pytest.mark.parametrize(
    ("value", "state"), [("", "ok"), ("2", "ok"), ("9", "slow"), ("x", "slow")]
)
def test_a_variable_is_compared_with_the_cores(value: str, state: str) -> None:
    assert threads.check_variables({"OMP_NUM_THREADS": value}, 2).state == state


def test_torch_with_more_threads_than_cores_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: 9)

    assert threads.check_torch_threads(2).state == "slow"
    assert threads.check_torch_threads(9).state == "ok"


def test_two_kinds_of_openmp_are_slow() -> None:
    maps = (
        "7f00-7f01 r-xp 0 0:0 1   /env/torch/lib/libgomp.so.1\n"
        "7f02-7f03 r-xp 0 0:0 1   /env/torch/lib/libgomp.so.1\n"
        "7f04-7f05 r-xp 0 0:0 1   /env/other/libiomp5.so\n"
    )

    paths = threads.openmp_in(maps)

    assert paths == ["/env/other/libiomp5.so", "/env/torch/lib/libgomp.so.1"]
    assert threads.finding_for_runtimes(paths).state == "slow"
    assert threads.finding_for_runtimes(paths[1:]).state == "ok"


# -- compiled code


@pytest.mark.parametrize(
    ("has", "seen", "state"),
    [({"avx2"}, {"avx2"}, "ok"), ({"avx2", "avx512f"}, {"avx2"}, "slow"), (set(), set(), "slow")],
)
def test_instructions_that_numba_does_not_see_are_slow(
    has: set[str], seen: set[str], state: str
) -> None:
    assert compiler.finding_for_features(has, seen, None).state == state


@pytest.mark.parametrize(
    ("is_warm", "is_writable", "state"), [(True, False, "ok"), (False, True, "slow")]
)
def test_a_cache_is_as_good_as_what_is_in_it(
    is_warm: bool, is_writable: bool, state: str, tmp_path: Path
) -> None:
    found = compiler.finding_for_cache(tmp_path, is_warm=is_warm, is_writable=is_writable)

    assert found.state == state


def test_a_cache_that_cannot_be_written_asks_for_another(tmp_path: Path) -> None:
    found = compiler.finding_for_cache(tmp_path, is_warm=False, is_writable=False)

    assert "NUMBA_CACHE_DIR" in found.fix


def test_compiled_code_that_is_older_than_its_source_is_not_kept(tmp_path: Path) -> None:
    source, made = tmp_path / "kernel.py", tmp_path / "kernel.decide-1.nbi"
    source.touch()
    assert not compiler.is_kept(tmp_path, source)
    made.touch()
    assert compiler.is_kept(tmp_path, source)
    os.utime(made, (1, 1))
    assert not compiler.is_kept(tmp_path, source)


def test_a_made_up_bandit_scores_as_its_network_does(numbers: Any) -> None:
    network = draw_network(numbers)
    arms, context = (numbers.standard_normal(size, "f") for size in ((300, DIM), DIM))
    frozen = made_up_bandit(network, arms)

    chosen = frozen.choose(context)

    scores = network.scores(context, arms)
    assert chosen.score == pytest.approx(float(scores[chosen.row]), rel=1e-4)
    assert scores[chosen.row] >= sorted(scores)[-5]


@pytest.mark.parametrize(
    ("choose_s", "share", "state"),
    [(50e-6, 0.99, "ok"), (5e-3, 0.99, "slow"), (50e-6, 0.5, "broken")],
)
def test_decisions_should_be_quick_and_good(choose_s: float, share: float, state: str) -> None:
    told = speed.Speed(first_s=0.1, choose_s=choose_s, scan_s=0.02, share=share)

    assert speed.finding_for_speed(told).state == state


# -- the machine


@pytest.mark.parametrize(
    ("left", "swapped", "state"),
    [(9 * GIB, 0, "ok"), (GIB // 2, 0, "slow"), (9 * GIB, 4 * GIB, "slow")],
)
def test_little_memory_and_swap_are_slow(left: int, swapped: int, state: str) -> None:
    found = machine.finding_for_memory(left=left, total=16 * GIB, swapped=swapped)

    assert found.state == state


def test_a_container_has_what_its_limit_leaves(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")

    assert machine.limit_left(tmp_path) == 600


@pytest.mark.parametrize(("limit", "state"), [(256, "slow"), (65_536, "ok"), (-1, "ok")])
def test_few_open_files_are_slow(limit: int, state: str) -> None:
    assert machine.finding_for_open_files(limit, -1).state == state


def test_a_clock_before_the_release_is_broken() -> None:
    assert machine.finding_for_clock(0.0, 1e9).state == "broken"
    assert machine.check_clock().state == "ok"


# -- the data folder


def test_a_folder_that_cannot_be_written_to_is_broken(closed_folder: Path) -> None:
    (found,) = data_folder.check_data_folder(closed_folder)

    assert found.state == "broken"
    assert "cannot be written to" in found.found


def test_a_folder_that_is_not_there_is_broken(tmp_path: Path) -> None:
    (found,) = data_folder.check_data_folder(tmp_path / "nowhere")

    assert found.fix == f"Run: mkdir -p {tmp_path / 'nowhere'}"


def test_a_new_folder_is_looked_at_in_full(tmp_path: Path) -> None:
    names = [one.name for one in data_folder.check_data_folder(tmp_path)]

    assert names == ["data folder", "space", "file system", "sync", "SQLite", "log"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("free", "state"), [(GIB // 64, "broken"), (GIB // 2, "slow"), (9 * GIB, "ok")]
)
def test_a_full_disk_is_broken(free: int, state: str) -> None:
    assert data_folder.finding_for_space(free).state == state


@pytest.mark.parametrize(
    ("kind", "state"),
    [("ext4", "ok"), ("", "ok"), ("overlay", "ok"), ("nfs4", "broken"), ("tmpfs", "broken")],
)
def test_a_network_and_memory_are_no_place_for_a_log(kind: str, state: str) -> None:
    assert data_folder.finding_for_kind(kind).state == state


def test_the_innermost_mount_tells_the_kind(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"a / ext4 rw 0 0\nb {tmp_path} nfs4 rw 0 0\nc {tmp_path}-other tmpfs rw 0 0\n"
    )

    assert data_folder.kind_of(tmp_path, mounts) == "nfs4"
    assert data_folder.kind_of(Path("/"), mounts) == "ext4"


@pytest.mark.parametrize(("seconds", "state"), [(0.001, "ok"), (0.05, "slow")])
def test_a_disk_that_syncs_slowly_is_slow(seconds: float, state: str) -> None:
    assert data_folder.finding_for_syncs([seconds] * 20).state == state


def test_a_log_of_this_version_is_fine(tmp_path: Path) -> None:
    SqliteLog(tmp_path / "events.db").close()

    assert data_folder.check_log(tmp_path) == fine("log", f"version {VERSION}")


def test_a_log_of_a_newer_version_is_broken(tmp_path: Path) -> None:
    SqliteLog(tmp_path / "events.db").close()
    connection = apsw.Connection(str(tmp_path / "events.db"))
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()

    found = data_folder.check_log(tmp_path)

    assert found.state == "broken"
    assert "Install a newer fastbandit" in found.found


def test_the_copy_of_a_shared_log_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    SqliteLog(tmp_path / "copy" / "events.db").close()

    assert data_folder.check_log(tmp_path) == fine(
        "log", f"the copy of a shared log: version {VERSION}"
    )

    (tmp_path / "copy" / "events.db").write_bytes(b"something else" * 100)

    assert "it is copied anew" in data_folder.check_log(tmp_path).fix


def test_a_log_that_is_no_log_is_broken(tmp_path: Path) -> None:
    (tmp_path / "events.db").write_bytes(b"something else" * 100)

    assert data_folder.check_log(tmp_path).state == "broken"
