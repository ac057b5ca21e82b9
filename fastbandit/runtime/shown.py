"""What a bandit is, on a line or in a small table of a notebook."""

from __future__ import annotations

from typing import Any

from fastbandit.types import html_table

Facts = list[tuple[str, str]]


def text_of_bandit(bandit: Any) -> str:
    """Return a bandit on a line."""
    return _line("Bandit", facts_of_bandit(bandit))


def html_of_bandit(bandit: Any) -> str:
    """Return a bandit as a table."""
    return html_table("Bandit", facts_of_bandit(bandit))


def text_of_frozen(frozen: Any) -> str:
    """Return a frozen bandit on a line."""
    return _line("FrozenBandit", facts_of_frozen(frozen))


def html_of_frozen(frozen: Any) -> str:
    """Return a frozen bandit as a table."""
    return html_table("FrozenBandit", facts_of_frozen(frozen))


def facts_of_bandit(bandit: Any) -> Facts:
    """Return what its parts are, how many arms it has, and how often it learned."""
    policy, plan = bandit.policy, bandit.blueprint
    parts = [
        ("model", policy.model),
        ("exploration", policy.exploration),
        ("search", policy.search),
    ]
    return [
        ("arms", f"{len(policy.arms):,}" if hasattr(policy.arms, "table") else "a box"),
        ("context", str(plan.context)),
        ("reward", str(plan.reward)),
        *((name, type(part).__name__) for name, part in parts),
        ("version", str(bandit.version)),
        ("seed", str(plan.seed)),
    ]


def facts_of_frozen(frozen: Any) -> Facts:
    """Return how many arms it has, and what it was frozen from."""
    codec = frozen.parts[2]
    return [
        ("arms", f"{len(frozen):,}"),
        ("waiting", f"{frozen.waiting:,}"),
        ("bytes per arm", f"{frozen.bytes_per_arm:.0f}"),
        ("version", str(frozen.version)),
        ("seed", str(codec.seed)),
    ]


def _line(name: str, facts: Facts) -> str:
    return f"{name}({', '.join(f'{what} {said}' for what, said in facts)})"
