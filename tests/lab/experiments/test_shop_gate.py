"""Versions of the synthetic shop pass the gate of the service."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit.learning.candidate_checks import Checks
from fastbandit.learning.schedule import Schedule
from lab.__main__ import cli
from lab.experiments.shop import Neural
from lab.experiments.shop_data import make_shop, make_users
from lab.experiments.shop_gate import Gated

WORDS = ["shop", "--gate", "--items=30", "--requests=700", "--logged=0", "--seeds=1"]


def test_versions_are_judged_when_they_are_due(little_training: None) -> None:
    found = CliRunner().invoke(cli, [*WORDS, "--json"], catch_exceptions=False).output

    (only,) = json.loads(found)["versions"]
    assert (only["seed"], only["start"], only["requests"]) == (0, "cold", 500)


def test_a_refused_version_does_not_decide_and_its_requests_are_learned_later(
    little_training: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shop, users = make_shop(30, seed=0), make_users(500, seed=0)
    agent = Neural(shop, users, seed=0)
    gated = Gated(agent.bandit, agent.ids, tmp_path)
    rows, clicks = np.zeros(500, dtype=np.int64), np.arange(500) % 2.0
    with monkeypatch.context() as patched:
        patched.setattr(Checks, "reason", lambda *_: "no")
        gated.learn(users, rows, clicks)
    due = gated.batch(0)
    monkeypatch.setattr(Checks, "reason", lambda *_: None)
    gated.learn(users, rows, clicks)

    assert gated.judged == [(500, "no"), (1000, None)]
    assert due == 500
    needed = Schedule(500, 0.1, 60.0).needed(900)
    assert gated.batch(0) == needed - 100  # a hundred were held out, and are fresh
