"""Lets the plan of a cluster run in the simulator, and the simulator against what ran here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from lab.planning.cluster_plan import ClusterAsk, ClusterPlan
from lab.planning.cluster_plan_units import GROUP, Ran, Units
from lab.planning.simulator import Costs, Scene, Simulated, simulate

_SECONDS = 3.0
_SLOWNESS = 1.5
_NOTICED_S = 1.0
"""What a balancer takes to send on who asks a machine that is gone: `timeout connect`."""


@dataclass(frozen=True)
class Played:
    """A scene by its name, and what became of it."""

    name: str
    scene: Scene
    became: Simulated


@dataclass(frozen=True)
class Checked:
    """A load that ran here, and what the simulator makes of it."""

    ran: Ran
    simulated: Simulated

    @property
    def ratio(self) -> float:
        """Simulated answers a second over real ones."""
        return self.simulated.per_second / self.ran.per_second if self.ran.per_second else 0.0


def play(ask: ClusterAsk, plan: ClusterPlan, units: Units) -> list[Played]:
    """Play one shard of a cluster: steady, while a snapshot is pushed, and as a decider fails."""
    costs = costs_of(plan, units)
    steady = Scene(
        deciders=max(1, ceil(plan.deciders / plan.shards)),
        seconds=_SECONDS,
        rate=ask.selects / plan.shards,
        rewards_share=ask.rewards_share,
        is_log_shared=True,
    )
    slow = replace(steady, slow_from=0.0, slow_until=_SECONDS, slowness=_SLOWNESS)
    fails = replace(steady, fails_at=_SECONDS / 3, noticed_s=_NOTICED_S, back_s=_SECONDS)
    scenes = {"steady": steady, "snapshots are loaded": slow, "a decider fails": fails}
    return [Played(name, scene, simulate(scene, costs)) for name, scene in scenes.items()]


def costs_of(plan: ClusterPlan, units: Units) -> Costs:
    """Return the costs of a decider, and of a log that takes as many events as was planned."""
    log = units.log
    if plan.log_source != "measured":
        commit_s = min(log.commit_s, 0.5 * GROUP / plan.log_per_second)
        log = replace(log, commit_s=commit_s, event_s=1.0 / plan.log_per_second - commit_s / GROUP)
    return Costs(
        select_s=plan.select_s,
        reward_s=plan.reward_s,
        commit_s=log.commit_s,
        event_s=log.event_s,
        spread=units.choices[-1].spread,
        commit_spread=log.spread,
    )


def check(units: Units) -> list[Checked]:
    """Simulate the loads that a real service on this machine had, with a log of its own."""
    log = units.sqlite
    rest_s = units.http_s + units.route_s + log.cpu_s + units.other_s
    costs = Costs(
        select_s=rest_s + units.service_choose_s,
        reward_s=rest_s,
        commit_s=log.commit_s,
        event_s=log.event_s,
        spread=units.choices[0].spread,
        commit_spread=log.spread,
    )
    return [Checked(ran, simulate(_scene_of(ran), costs)) for ran in units.ran]


def _scene_of(ran: Ran) -> Scene:
    return Scene(deciders=1, seconds=2.0, rate=ran.rate, connections=ran.connections)
