"""A policy, compiled: the same arms for the same seeds, several times as fast."""

from __future__ import annotations

from dataclasses import dataclass

from fastbandit.arms.catalogue import Catalogue
from fastbandit.policy import Policy
from fastbandit.runtime.freezing import can_freeze, freeze
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.settings.blueprint import Blueprint

COMPILED_ABOVE = 512
"""Few arms are left to torch: they are not worth the wait for a compiler, once a machine."""


@dataclass(frozen=True, eq=False)
class CompiledPolicy:
    """A policy, and what decides instead of it; None where the policy has to decide itself."""

    policy: Policy
    frozen: FrozenBandit | None

    @staticmethod
    def of(plan: Blueprint, policy: Policy, *, version: int) -> CompiledPolicy:
        """Freeze a policy where that can be and pays: on the CPU, with more than a few arms."""
        arms, is_on_cpu = policy.arms, policy.model.device == "cpu"
        are_many = isinstance(arms, Catalogue) and len(arms) > COMPILED_ABOVE
        if not (is_on_cpu and are_many and can_freeze(policy)):
            return CompiledPolicy(policy, None)
        return CompiledPolicy(policy, freeze(plan, policy, version, decisions=0))
