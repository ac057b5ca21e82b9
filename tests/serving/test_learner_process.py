"""What a learner says of itself beside a service."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from fastbandit.serving.learner_process import LearnerProcess
from fastbandit.serving.metrics import Metrics
from tests.serving.little_service import config_in


def says(folder: Path, state: str, error: str = "") -> None:
    (folder / "learner.json").write_text(json.dumps({"state": state, "error": error}))


def test_what_an_earlier_learner_said_is_forgotten(tmp_path: Path) -> None:
    says(tmp_path, "failed", "Mended by now.")
    command = [sys.executable, "-c", "input()"]
    learner = LearnerProcess(config_in(tmp_path), command, metrics=Metrics())

    async def story() -> dict[str, Any]:
        task = asyncio.create_task(learner.keep_running())
        while learner.is_down:
            await asyncio.sleep(0.01)
        task.cancel()
        await learner.stop()
        return learner.state()

    assert asyncio.run(story()) == {}
