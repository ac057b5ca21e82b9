"""Who else uses a file or a folder is waited for, or noticed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from fastbandit.files.locks import is_used, locking


def test_one_waits_for_another_that_holds_the_lock(tmp_path: Path) -> None:
    order: list[str] = []

    def later() -> None:
        with locking(tmp_path / ".lock"):
            order.append("second")

    with locking(tmp_path / ".lock"):
        waiting = threading.Thread(target=later)
        waiting.start()
        waiting.join(0.05)
        order.append("first")
    waiting.join()

    assert order == ["first", "second"]


def test_a_draft_is_used_while_its_process_lives(tmp_path: Path) -> None:
    parent, nobody = os.getppid(), 2**22 - 1  # no process has a number as high

    assert is_used(tmp_path / f".draft-{parent}-0a")
    assert not is_used(tmp_path / f".draft-{nobody}-0a")
    assert not is_used(tmp_path / f".draft-{os.getpid()}-0a")
    assert not is_used(tmp_path / ".draft")
