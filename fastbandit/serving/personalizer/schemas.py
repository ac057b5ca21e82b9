"""The shape of each request and answer of Personalizer, with the names of its reference.

What is not in a shape is ignored, as it was there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct

from fastbandit.serving.schemas import DecisionId

EventId = Annotated[str, Meta(min_length=1, max_length=256)]
ActionId = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
Features = list[dict[str, Any]]
NEVER = "0001-01-01T00:00:00Z"
Value = Annotated[float, Meta(ge=-1, le=1)]


class RankableAction(Struct, frozen=True):
    """An action that may be chosen, with its features in any number of objects."""

    id: ActionId
    features: Features | None = None


class RankRequest(Struct, frozen=True, rename="camel"):
    """Which of these actions, in this context? The `subject` is ours: whom it is about."""

    actions: Annotated[list[RankableAction], Meta(min_length=1)]
    context_features: Features | None = None
    excluded_actions: list[str] | None = None
    event_id: EventId | None = None
    defer_activation: bool | None = None
    subject: DecisionId | None = None


class UnreadRankRequest(RankRequest, frozen=True, rename="camel"):
    """A rank whose actions are bytes that were not read."""

    actions: Annotated[list[Raw], Meta(min_length=1)]  # type: ignore[assignment]


class RankedAction(Struct, frozen=True):
    """An action, and how likely it was to be chosen."""

    id: str
    probability: float


class RankResponse(Struct, frozen=True, rename="camel"):
    """Actions, likeliest first but for the one that was chosen; excluded ones at their place."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class RewardRequest(Struct, frozen=True):
    """What came of the action that was chosen."""

    value: Value


class SlotRequest(Struct, frozen=True, rename="camel"):
    """A place to fill, and the action that the caller would put there."""

    id: ActionId
    baseline_action: str
    features: Features | None = None
    excluded_actions: list[str] | None = None


class MultiSlotRankRequest(Struct, frozen=True, rename="camel"):
    """Which of these actions in which slot, in this context?"""

    actions: Annotated[list[RankableAction], Meta(min_length=1)]
    slots: Annotated[list[SlotRequest], Meta(min_length=1)]
    context_features: Features | None = None
    event_id: EventId | None = None
    defer_activation: bool | None = None
    subject: DecisionId | None = None


class SlotResponse(Struct, frozen=True, rename="camel"):
    """The action that was chosen for a slot."""

    id: str
    reward_action_id: str


class MultiSlotRankResponse(Struct, frozen=True, rename="camel"):
    """The action of each slot, in the order of the slots."""

    slots: list[SlotResponse]
    event_id: str


class SlotReward(Struct, frozen=True, rename="camel"):
    """What came of the action in a slot."""

    slot_id: ActionId
    value: Value


class MultiSlotRewardRequest(Struct, frozen=True):
    """What came of the actions in some slots."""

    reward: Annotated[list[SlotReward], Meta(min_length=1)]


class ServiceConfiguration(Struct, frozen=True, rename="camel"):
    """What may be changed while a service runs; what is null or left out stays as it is."""

    reward_wait_time: str
    default_reward: float
    reward_aggregation: str
    exploration_percentage: Annotated[float, Meta(ge=0, le=1)]
    model_export_frequency: str
    log_retention_days: Annotated[int, Meta(ge=-1)] | None = None
    learning_mode: str | None = None
    last_configuration_edit_date: str | None = None
    log_mirror_enabled: bool | None = None
    log_mirror_sas_uri: str | None = None
    is_auto_optimization_enabled: bool | None = None
    auto_optimization_frequency: str | None = None
    auto_optimization_start_date: str | None = None


class PolicyContract(Struct, frozen=True):
    """Learning settings: a name, and arguments as a command line."""

    name: Annotated[str, Meta(max_length=256)]
    arguments: Annotated[str, Meta(max_length=1024)]


class ModelProperties(Struct, frozen=True, rename="camel"):
    """When the model in service was made, and the first of its line."""

    creation_time: str
    last_modified_time: str


class DateRange(Struct, frozen=True, rename={"since": "from", "until": "to"}):
    """From when to when."""

    since: str
    until: str


class LogsProperties(Struct, frozen=True, rename="camel"):
    """What the log holds; the counts are more than Personalizer said."""

    date_range: DateRange
    decisions: int
    rewards: int


class ContainerStatus(Struct, frozen=True, rename="camel"):
    """Whether the service can decide."""

    service: str
    api_status: str
    api_status_message: str


class EvaluationContract(Struct, frozen=True, rename="camel"):
    """What is to be judged: decisions from one time to another."""

    name: Annotated[str, Meta(min_length=1, max_length=256)]
    start_time: datetime
    end_time: datetime
    policies: list[PolicyContract] = []
    enable_offline_experimentation: bool | None = False


class PolicyResultSummary(Struct, frozen=True, rename="camel"):
    """What a policy would have earned in a window of time, by IPS and SNIPS."""

    time_stamp: str
    ips_estimator_numerator: float
    ips_estimator_denominator: float
    snips_estimator_denominator: float
    aggregate_time_window: str
    non_zero_probability: float
    sum_of_squares: float
    confidence_interval: float
    average_reward: float


class PolicyResult(Struct, frozen=True, rename="camel"):
    """What a policy would have earned."""

    name: str
    arguments: str
    policy_source: str
    summary: list[PolicyResultSummary]
    total_summary: PolicyResultSummary


class Evaluation(Struct, frozen=True, rename="camel"):
    """A comparison of policies on the log."""

    id: str
    name: str
    start_time: str
    end_time: str
    job_id: str
    status: str
    policy_results: list[PolicyResult]
    feature_importance: list[list[str]]
    evaluation_type: str
    optimal_policy: str
    creation_time: str


class InnerError(Struct, frozen=True):
    """An error, more exactly."""

    code: str


class Error(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why a request was rejected."""

    code: str
    message: str
    target: str | None = None
    details: list[Error] = []
    inner_error: InnerError | None = None


class ErrorResponse(Struct, frozen=True):
    """What is answered in place of what was asked for."""

    error: Error
