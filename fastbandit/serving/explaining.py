"""Explains decisions of the log, and arms, by the version in service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from msgspec import UNSET

from fastbandit.errors import FastbanditError
from fastbandit.runtime.explanation import BASE, Explanation
from fastbandit.runtime.propensity import is_uniform
from fastbandit.serving.arm_columns import titles_of
from fastbandit.serving.decider import Serving
from fastbandit.serving.problems import Rejection, rejection_of_error
from fastbandit.serving.request_arms import offering
from fastbandit.serving.schemas import ExplainedChange, ExplanationAnswer
from fastbandit.storage.events import Arm, ArmId, DecisionMade


class Known(NamedTuple):
    """What a service knows of features: the context's names, the arms' title, and an arm's own."""

    names: tuple[str, ...] = ()
    title: str = ""
    features_of: Callable[[Serving, Any], Any] = lambda serving, arm: None


_NOTHING = Known()


def explain_decision(
    serving: Serving, made: DecisionMade, *, arm: str | None = None, known: Known = _NOTHING
) -> ExplanationAnswer:
    """Explain the first arm of a decision, or another of its arms."""
    if made.offered:
        serving, known = _among_offered(serving, made, known)
    taken = made.arms[0] if arm is None else _named(made.arms, arm)
    seed = made.seed if made.explored else None
    given = {"seed": seed, "eligible": made.eligible}
    answer = _explained(serving, made.context, taken, known=known, **given)
    answer.decision, answer.decided_by_version = made.id, made.version
    answer.is_uniform = made.version == 0 or (
        bool(made.epsilon) and is_uniform(made.seed, made.epsilon)
    )
    if made.propensities and taken == made.arms[0]:
        answer.propensity = made.propensities[0]
    return answer


def _among_offered(serving: Serving, made: DecisionMade, known: Known) -> tuple[Serving, Known]:
    """Return what knows the arms of a request alone, and their features as they came."""
    arms = {id: Arm(id, []) for id in made.eligible} | {arm.id: arm for arm in made.offered or ()}
    few = replace(serving, bandit=offering(serving.bandit, list(arms.values())))

    def features_of(_: Serving, arm: Any) -> Any:
        came = arms[arm].features
        return [came] if came else known.features_of(serving, arm)

    return few, known._replace(features_of=features_of)


def explain_arm(serving: Serving, arm: str, *, known: Known = _NOTHING) -> ExplanationAnswer:
    """Explain the expected reward of an arm for the typical context."""
    is_number = arm not in serving.bandit and arm.lstrip("-").isdecimal()
    return _explained(serving, None, int(arm) if is_number else arm, known=known)


def unknown_decision(id: str) -> Rejection:
    """Reject an id that no decision has."""
    return Rejection(
        404,
        "no such decision",
        "No decision of this id is in the log.",
        fix="Send the id that the answer to a select has.",
        field="id",
        value=id,
    )


def _named(arms: list[ArmId], arm: str) -> ArmId:
    """Return the arm of a decision that is written so."""
    for one in arms:
        if str(one) == arm:
            return one
    raise Rejection(
        404,
        "no such arm",
        "The decision did not choose this arm.",
        fix="Name one of its arms, or leave arm out.",
        field="arm",
        value=arm,
    )


def _explained(
    serving: Serving,
    context: Any,
    arm: Any,
    *,
    known: Known,
    seed: int | None = None,
    eligible: Any = None,
) -> ExplanationAnswer:
    terms = {"seed": seed, "eligible": eligible, "features": known.features_of(serving, arm)}
    try:
        found = serving.bandit.explain(context, arm, **terms)
    except FastbanditError as error:
        raise rejection_of_error(error, field="arm", value=arm) from error
    answer = _answer_of(found, known.names)
    titles = titles_of(serving.bandit, [arm, found.runner_up], setting=known.title)
    answer.title = titles.get(arm, UNSET)
    answer.runner_up_title = titles.get(found.runner_up, UNSET)
    return answer


def _answer_of(found: Explanation, names: tuple[str, ...]) -> ExplanationAnswer:
    """Return an explanation with the names that the service has for features."""
    given = {f"context[{n}]": name for n, name in enumerate(names)}
    taken = {BASE, *(name for name in found.contributions if name not in given)}
    called = {old: f"context: {new}" if new in taken else new for old, new in given.items()}
    return ExplanationAnswer(
        arm=found.arm,
        score=found.score,
        expected=found.expected,
        draw=found.draw,
        interval=None if found.interval is None else list(found.interval),
        contributions={called.get(n, n): value for n, value in found.contributions.items()},
        runner_up=found.runner_up,
        runner_up_score=found.runner_up_score,
        changes=[
            ExplainedChange([called.get(n, n) for n in one.features], one.difference, one.moved)
            for one in found.changes
        ],
        propensity=found.propensity,
        version=found.version,
    )
