"""The shape of each request and answer of the service, version 1.

What is not in a shape is rejected: a misspelt field never goes unnoticed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from fastbandit.storage.events import RewardStatus, Who

MOST_CONTEXTS = 1_000
MOST_REWARDS = 10_000
MOST_ARMS = 10_000
MOST_K = 1_000
MOST_OFFERED = 1_000
MOST_FEATURES = 100_000
MOST_COLUMNS = 1_000
MOST_OUTCOMES = 100

DecisionId = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._:-]{1,128}\Z",
        description="Letters, digits and . _ : - ; at most 128 of them.",
        examples=["0c3f7a52d1e94b60"],
    ),
]
ArmName = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
ArmNumber = Annotated[int, Meta(ge=-(2**53), le=2**53)]
AnyArm = ArmName | ArmNumber
Numbers = Annotated[list[float], Meta(max_length=MOST_FEATURES)]
Context = Numbers | dict[str, Any]


class Baseline(Struct, forbid_unknown_fields=True):
    """The arm that the caller's own policy takes, and how likely it was to take it."""

    arm: AnyArm
    propensity: Annotated[float, Meta(gt=0, le=1)] | None = None


class OfferedArm(Struct, forbid_unknown_fields=True):
    """An arm that a request brings: with its features, or without if the catalogue has it."""

    id: AnyArm
    features: Numbers | dict[str, Any] | None = None


class SelectRequest(Struct, forbid_unknown_fields=True):
    """One context, or many: which arms for each?

    A context is a list of numbers, or an object where the service has names for them: with a
    schema, of values of any kind, which are texts, numbers, booleans, lists or null. `k`
    arms are chosen for each, or all that are eligible where those are fewer. `eligible` is a
    list of ids, or a predicate on the arms' columns such as {"price": {"<=": 10}}. With
    `explore` off the arms are chosen by expected reward. An id of your own (`ids` for many)
    makes a retry safe: the same id gives the same answer. `propensity` asks how likely the
    chosen arm was. In shadow mode `baseline` (`baselines` for many) is the arm that your own
    policy takes. Eligible ids that are not in the catalogue are dropped; `strict` rejects them.
    `arms`, in place of `eligible`, are the ones to choose among, in the catalogue or not.
    `columns` names columns of the arms that the answer is to have beside them. `subject` is whom
    the decision is about: `fastbandit forget` removes all that is stored under it.
    """

    context: Context | UnsetType = UNSET
    contexts: Annotated[list[Context], Meta(min_length=1, max_length=MOST_CONTEXTS)] | UnsetType = (
        UNSET
    )
    k: Annotated[int, Meta(ge=1, le=MOST_K)] = 1
    eligible: Annotated[list[str | int], Meta(min_length=1)] | dict[str, Any] | None = None
    explore: bool = True
    propensity: bool = False
    id: DecisionId | None = None
    ids: Annotated[list[DecisionId], Meta(min_length=1, max_length=MOST_CONTEXTS)] | None = None
    baseline: Baseline | None = None
    baselines: Annotated[list[Baseline], Meta(min_length=1, max_length=MOST_CONTEXTS)] | None = None
    strict: bool = False
    arms: Annotated[list[OfferedArm], Meta(min_length=1, max_length=MOST_OFFERED)] | None = None
    columns: Annotated[list[str], Meta(max_length=MOST_COLUMNS)] = []
    subject: DecisionId | None = None


class SelectAnswer(Struct):
    """The arms chosen for one context, best first.

    `scores` are in units of reward. `version` counts the updates of the model, `catalogue` is
    the number of the last change of the arms. `degraded` says that the answer comes from
    less than the model that should serve; the status says why. In shadow mode `decided_by` says
    whose arms these are, and `other` is the arm that the other one would have taken. `dropped` is
    there where some eligible ids were not in the catalogue: how many. `columns` are those asked
    for, an object an arm as the catalogue has it now, null for an arm that is gone.
    """

    decision: str
    arms: list[str | int]
    scores: list[float]
    version: int
    catalogue: int
    degraded: bool
    propensities: list[float] | None = None
    decided_by: Who | UnsetType = UNSET
    other: str | int | UnsetType | None = UNSET
    dropped: int | UnsetType = UNSET
    columns: list[dict[str, str | float | bool | None] | None] | UnsetType = UNSET


class SelectAnswers(Struct):
    """One answer for each context, in their order."""

    decisions: list[SelectAnswer]


PartName = Annotated[str, Meta(max_length=128, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
Outcomes = Annotated[dict[PartName, float], Meta(min_length=1, max_length=MOST_OUTCOMES)]


class Reward(Struct, forbid_unknown_fields=True):
    """What came of a decision: of its first arm, unless another is named.

    Where rewards add up, those that are meant to differ in `part`.
    """

    decision: DecisionId
    value: float
    arm: AnyArm | None = None
    part: PartName = ""


class RewardRequest(Struct, forbid_unknown_fields=True):
    """One reward, or many; or `outcomes` of a decision by name, each a reward of that part.

    Where the service weighs outcomes, those that are known may come now and others later.
    """

    decision: DecisionId | UnsetType = UNSET
    value: float | UnsetType = UNSET
    arm: AnyArm | None = None
    part: PartName = ""
    outcomes: Outcomes | UnsetType = UNSET
    rewards: Annotated[list[Reward], Meta(min_length=1, max_length=MOST_REWARDS)] | UnsetType = (
        UNSET
    )


class RewardAnswer(Struct):
    """What became of a reward; all are logged, only counted ones are learned from."""

    decision: str
    status: RewardStatus


class RewardAnswers(Struct):
    """One answer for each reward, in their order."""

    rewards: list[RewardAnswer]


class ArmUpsert(Struct, forbid_unknown_fields=True):
    """An arm to choose from now on, in place of any of the same id.

    Its features are a list of numbers, or an object where the arms have names for them; none where
    arms are known by their ids alone.
    """

    id: AnyArm
    features: Numbers | dict[str, Any] = []
    columns: dict[str, str | float | bool | None] | None = None


class UpsertArmsRequest(Struct, forbid_unknown_fields=True):
    """Arms to add, or to change."""

    arms: Annotated[list[ArmUpsert], Meta(min_length=1, max_length=MOST_ARMS)]


class UpsertArmsAnswer(Struct):
    """How many arms are new, were changed, and were there just so."""

    added: int
    changed: int
    unchanged: int
    arms: int
    catalogue: int


class DiscardArmsRequest(Struct, forbid_unknown_fields=True):
    """Arms never to choose again."""

    ids: Annotated[list[AnyArm], Meta(min_length=1, max_length=MOST_ARMS)]


class DiscardArmsAnswer(Struct):
    """How many arms were removed; those that were not there are listed."""

    removed: int
    unknown: list[str | int]
    arms: int
    catalogue: int


class Problem(Struct, omit_defaults=True):
    """Why a request was rejected (RFC 9457): which field, what came, and what to do."""

    type: str
    title: str
    status: int
    detail: str
    fix: str
    field: str | None = None
    value: str | None = None


class Reason(Struct):
    """Why the service is not ready, or does less than it should."""

    name: str
    detail: str
    fix: str


class Readiness(Struct, omit_defaults=True):
    """Whether the service can decide and remember now, and if not, why.

    `rewards` says so where decisions are made, and rewards are rejected for now.
    """

    status: Literal["ready", "not ready"]
    reasons: list[Reason]
    rewards: Literal["ready", "not ready"] = "ready"


class Status(Struct):
    """What serves now, why it is degraded if it is, and what the learner does.

    `decides` is who decides; `baseline` is where the baseline's arm comes from, if anywhere.
    `checks` are those that the version passed; so many after it were `refused_in_a_row`.
    """

    fastbandit: str
    ready: bool
    reasons: list[Reason]
    problems: list[Reason]
    version: int | None
    catalogue: int
    arms: int
    arms_not_indexed: int
    events: int
    uptime_seconds: float
    learner: dict[str, Any]
    serving: dict[str, float | int | None]
    rewards: dict[str, int]
    decides: Who = "bandit"
    baseline: str = ""
    checks: dict[str, Any] = {}
    refused_in_a_row: int = 0


class ExplainedChange(Struct):
    """Context features that, were they typical, would put the other of two arms ahead.

    `difference` is then the score of the arm less that of the runner-up; it `moved` so far.
    """

    features: list[str]
    difference: float
    moved: float


class ExplanationAnswer(Struct):
    """What the score of an arm is made of, in units of reward; contributions sum to the score.

    `version` is the one in service, which explains; `decided_by_version` the one that decided.
    `is_uniform` says that the decision took any eligible arm, by `select.epsilon`. `interval` holds
    the expected reward with a probability of 90 %. Each of `changes` would put the other of arm
    and runner-up ahead. An arm without a decision is explained for the typical context. Titles are
    there where the arms have a column for them.
    """

    arm: str | int
    score: float
    expected: float
    draw: float
    interval: list[float] | None
    contributions: dict[str, float]
    runner_up: str | int | None
    runner_up_score: float | None
    changes: list[ExplainedChange]
    propensity: float | None
    version: int
    decided_by_version: int | None = None
    decision: str | None = None
    is_uniform: bool = False
    title: str | UnsetType = UNSET
    runner_up_title: str | UnsetType = UNSET
