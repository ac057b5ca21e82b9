"""A campaign that is stopped ends what it started."""

from __future__ import annotations

import signal
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from lab.__main__ import faults
from lab.faults.stopping import SIGNALS

PROGRAM = """
from time import sleep
from lab.faults.stopping import ending_by_signals
with ending_by_signals():
    try:
        print("begun", flush=True)
        sleep(60)
    finally:
        sleep(0.2)
        print("ended", flush=True)
"""


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("times", [1, 2])
def test_a_signal_lets_all_be_ended_that_was_begun(number: signal.Signals, times: int) -> None:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        for _ in range(times):
            process.send_signal(number)
        said, error = process.communicate(timeout=60)

    assert said == b"ended\n"
    assert b"KeyboardInterrupt" in error


def test_campaigns_are_stopped_so_and_nothing_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    before, found = signal.getsignal(signal.SIGTERM), list[object]()

    def look() -> None:
        found.append(signal.getsignal(signal.SIGTERM))

    monkeypatch.setitem(faults.commands, "look", click.Command("look", callback=look))
    CliRunner().invoke(faults, ["look"])

    assert callable(found[0])
    assert signal.getsignal(signal.SIGTERM) is before
