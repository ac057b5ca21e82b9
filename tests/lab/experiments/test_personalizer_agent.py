"""Rounds are played through the client of Personalizer, and learned from."""

from __future__ import annotations

import pytest

from lab.experiments.per_request_actions import load
from lab.experiments.personalizer_agent import ThroughClient


@pytest.mark.slow
def test_a_service_learns_through_the_client_of_personalizer() -> None:
    agent = ThroughClient(batch=20, seed=3)
    try:
        for line, right in load("wine", rounds=40, seed=3).lines():
            position = agent.take(line)
            agent.learn(line, position, float(position == right))
        notes = agent._stage.store.current()
    finally:
        agent.close()

    assert notes is not None
    assert notes.version == 2
    assert notes.notes["learned"] == 20
