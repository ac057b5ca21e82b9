"""The vendor's own clients in JavaScript, unmodified, against a service that runs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastbandit.serving.keys import create_key
from fastbandit.settings.service import Config
from tests.serving.little_named import events_of
from tests.serving.personalizer.little_personalizer import CONTEXT, action
from tests.serving.personalizer.little_process import served

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent / "javascript"
NOT_CARRIED_OVER = {
    "apply",
    "import_model",
    "interactions",
    "observations",
}


@pytest.fixture(scope="module")
def packages() -> Path:
    """Return a folder outside of the repository with the clients as their lock file says."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    lock = (HERE / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "fastbandit-tests" / f"npm-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not (folder / "installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder)
        command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
        if done.returncode:
            pytest.skip(f"npm could not install the clients: {done.stderr[-300:]}")
        (folder / "installed").touch()
    return folder


@pytest.fixture
def answers(packages: Path, make: Callable[..., Config], tmp_path: Path) -> dict[str, Any]:
    config = make(learn__enabled=False)
    key, _ = create_key(tmp_path / "keys.json", name="sdk", scopes=("select", "reward", "admin"))
    told = json.dumps({"contextFeatures": CONTEXT, "action": action("x")})
    with served(config, tmp_path) as url:
        command = ["node", str(HERE / "clients.mjs"), url, key, str(packages), told]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"events": events_of(config)}


def test_every_call_of_both_clients_works(answers: dict[str, Any]) -> None:
    events = answers.pop("events")
    assert answers.pop("old_rank") == [201, True]
    assert (answers.pop("old_reward"), answers.pop("old_activate")) == (204, 204)
    assert answers.pop("old_error") == [400, "BadRequest", "actions[1].id"]
    assert answers.pop("wrong_key") == ["401", True, "401"]

    refused = {name: answers.pop(name) for name in NOT_CARRIED_OVER}
    assert [*refused.values()] == [["501", True, "OperationNotAllowed"]] * len(NOT_CARRIED_OVER)
    assert len(answers) == 20
    assert {name: said for name, said in answers.items() if said[0][0] != "2" or said[2]} == {}
    rewards = [(one.value, one.status) for one in events if hasattr(one, "status")]
    assert rewards == [(1, "counted"), (0.5, "counted"), (1, "counted"), (0, "counted")]
