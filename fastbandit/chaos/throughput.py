"""How many decisions a second a service makes and remembers, and what HTTP around it costs."""

from __future__ import annotations

from fastbandit.chaos.stage import LOG, Stage
from fastbandit.events import DecisionMade, RewardCame
from fastbandit.storage.sqlite_log import SqliteLog


def teach(stage: Stage, *, rounds: int) -> None:
    """Let a service that is not running learn from so many random choices in its world."""
    from fastbandit.learning.learner import Learner
    from fastbandit.bandit import Bandit
    from msgspec import structs
    from dataclasses import replace

    world, config = stage.world, stage.config
    snapshot = stage.store.current()
    bandit = Bandit.load(snapshot.bandit)
    decision = bandit.select(world.contexts(0, rounds))
    rewards = world.observed(0, decision.rows[:, 0])
    log = SqliteLog(stage.data / LOG)
    for place, (context, arm) in enumerate(zip(world.contexts(0, rounds).tolist(), decision.arms)):
        made = DecisionMade(f"lesson{place}", context, [arm], [0.0], int(decision.seeds[place])>>1, 0, 0, 10**9)
        log.append([made, RewardCame(made.id, float(rewards[place]))])
    log.close()
    learn = replace(config.learn, fresh=rounds, growth=0.0, held_out=0.0)
    learner = Learner(replace(config, learn=learn))
    step = learner.step()
    assert step.did == "published", step
