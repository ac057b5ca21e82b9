"""The loop pays what the environment says, audits before it decides, and learns all but the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense
from fastbandit.types import Audit, Decision, Inputs
from lab.experiments.continuum import Continuum
from lab.experiments.environment import Tabled
from lab.experiments.policies import agent_for
from lab.experiments.run import Run, run

Event = tuple[Any, ...]


def environment(*, rounds: int = 10, arms: int = 4, **settings: Any) -> Tabled:
    """Make an environment whose contexts are the numbers of instances; rewards of all sizes."""
    contexts = np.arange(rounds, dtype=np.float32)[:, None]
    worth = np.random.default_rng(3).normal(size=(rounds, arms)).astype(np.float32)
    made: dict[str, Any] = {"reward": "real", "noise": 1.0} | settings
    return Tabled("little", Dense(1), Inputs(dense=contexts), worth, **made)


class Scribe:
    """Takes the first arm (or a point), boasts of it, and writes down all that happens to it."""

    def __init__(self, points: Any = None) -> None:
        self.points = points
        self.events: list[Event] = []

    def select(self, contexts: Any, /) -> Decision:
        self.events.append(("select", contexts))
        rows = np.zeros((len(contexts), 1), dtype=np.int64)
        arms: Any = ["first"] * len(rows) if self.points is None else self.points[: len(rows)]
        return Decision(
            arms=arms,
            rows=rows,
            scores=np.full(rows.shape, 1e6, dtype=np.float32),
            seeds=np.zeros(len(rows), dtype=np.uint64),
            version=0,
            uniform=False,
            evaluations=np.full(len(rows), 10 * len(self.events)),
            lookups=np.full(len(rows), len(self.events)),
        )

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        self.events.append(("update", contexts, arms, rewards))

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event[0] == kind]


class Audited(Scribe):
    """A scribe that can be audited: the first audit finds 0.5, the next 1, then 1.5."""

    def audit(self, contexts: Any) -> Audit:
        self.events.append(("audit", contexts))
        quality = 0.5 * len(self.of("audit"))
        return Audit(quality, np.full(len(contexts), quality), 1.0, 1.0, len(contexts))


def test_rewards_are_the_environments_and_never_what_an_agent_claims() -> None:
    env = environment()

    done = run(env, Scribe(), rounds=10, batch=4)

    assert np.array_equal(done.rewards, env.expected(0, np.zeros(10, dtype=np.int64)))
    assert np.array_equal(done.best, env.ceiling(0, 10))
    assert done.share == pytest.approx(done.rewards.sum() / done.best.sum())


@pytest.mark.parametrize("policy", ["Random", "Overall best arm", "LinearTS"])
def test_regret_is_never_negative(policy: str) -> None:
    env = environment(rounds=60)

    done = run(env, agent_for(policy, env, seed=0, rounds=60), rounds=60, batch=20)

    assert (done.best - done.rewards >= 0).all()
    assert done.rewards.shape == (60,)


def test_an_agent_learns_what_was_observed_and_not_what_was_expected() -> None:
    env, agent = environment(), Scribe()

    run(env, agent, rounds=10, batch=5)

    ((_, _, arms, rewards),) = agent.of("update")
    rows = np.zeros(5, dtype=np.int64)
    assert arms == ["first"] * 5
    assert np.array_equal(rewards, env.observed(0, rows))
    assert not np.isin(rewards, env.expected(0, rows)).any()


def test_every_batch_but_the_last_is_learned_with_its_own_contexts() -> None:
    env, agent = environment(), Scribe()

    run(env, agent, rounds=10, batch=4)

    assert [event[0] for event in agent.events] == ["select", "update"] * 2 + ["select"]
    assert [len(event[1]) for event in agent.of("select")] == [4, 4, 2]
    for number, (_, contexts, _, rewards) in enumerate(agent.of("update")):
        assert np.array_equal(contexts, env.contexts(4 * number, 4))
        assert np.array_equal(rewards, env.observed(4 * number, np.zeros(4, dtype=np.int64)))


def test_a_batch_is_audited_before_it_is_decided_once_something_was_learned() -> None:
    env, agent = environment(), Audited()

    done = run(env, agent, rounds=10, batch=4, audits=3)

    order = ["select", "update", "audit", "select", "update", "audit", "select"]
    assert [event[0] for event in agent.events] == order
    for first, (_, contexts) in zip((4, 8), agent.of("audit"), strict=True):
        assert np.array_equal(contexts, env.contexts(first, min(3, 10 - first)))
    assert done.qualities == (0.5, 1.0)
    assert done.quality == pytest.approx(0.75)


def test_no_audits_are_made_where_none_are_wanted_or_possible() -> None:
    unwanted, agent = Audited(), Scribe()

    silent = run(environment(), unwanted, rounds=10, batch=4, audits=0)
    impossible = run(environment(), agent, rounds=10, batch=4)

    assert not unwanted.of("audit")
    assert (silent.quality, impossible.quality) == (None, None)


def test_a_continuum_is_played_by_points() -> None:
    env = Continuum("branin", noise=0.3)
    points = np.array([[0.0, 1.0], [2.0, 3.0], [np.pi, 2.275]], dtype=np.float32)
    agent = Scribe(points)

    done = run(env, agent, rounds=6, batch=3)

    assert np.array_equal(done.rewards, np.tile(env.expected(0, points), 2))
    ((_, _, arms, rewards),) = agent.of("update")
    assert np.array_equal(arms, points)
    assert np.array_equal(rewards, env.observed(0, points))
    assert done.rewards[2] == pytest.approx(done.best[2])


def played(policy: str, *, seed: int, batch: int = 10) -> Run:
    env = environment(rounds=30, arms=20)
    agent = agent_for(policy, env, seed=seed, rounds=30)
    return run(env, agent, rounds=30, batch=batch)


@pytest.mark.parametrize("policy", ["Random", "LinearTS", "Learned best arm"])
def test_the_same_seed_gives_the_same_run(policy: str) -> None:
    one, two, other = (played(policy, seed=seed) for seed in (1, 1, 2))

    assert np.array_equal(one.rewards, two.rewards)
    assert (one.evaluations, one.lookups) == (two.evaluations, two.lookups)
    assert not np.array_equal(one.rewards, other.rewards)


def test_a_policy_that_learns_nothing_does_the_same_in_any_batches() -> None:
    one, two = (played("Random", seed=1, batch=batch) for batch in (30, 7))

    assert np.array_equal(one.rewards, two.rewards)


def test_work_is_counted_once_something_was_learned() -> None:
    done = run(environment(), Scribe(), rounds=10, batch=5)

    assert (done.evaluations, done.lookups) == (30.0, 3.0)  # those of the third event


def test_a_single_batch_is_counted_and_never_learned() -> None:
    agent = Scribe()

    done = run(environment(), agent, rounds=5, batch=10)

    assert [event[0] for event in agent.events] == ["select"]
    assert (done.evaluations, done.update_seconds) == (10.0, 0.0)


def test_each_batch_is_reported_by_the_rounds_that_are_over() -> None:
    counts: list[int] = []

    run(environment(), Scribe(), rounds=10, batch=4, after_batch=counts.append)

    assert counts == [4, 8, 10]


@pytest.mark.parametrize(("rounds", "batch"), [(0, 4), (-1, 4), (10, 0)])
def test_a_run_of_nothing_is_refused(rounds: int, batch: int) -> None:
    with pytest.raises(SettingError, match=f"got rounds={rounds} and batch={batch}. Raise them"):
        run(environment(), Scribe(), rounds=rounds, batch=batch)


def test_selects_and_updates_are_timed_by_the_clock_that_is_given() -> None:
    ticks = iter(range(100))

    found = run(environment(), Scribe(), rounds=10, batch=5, clock=lambda: float(next(ticks)))

    assert (found.select_seconds, found.update_seconds) == (1 / 5, 1.0)
