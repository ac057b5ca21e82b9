"""The shape of what the console shows; times are milliseconds since 1970, in UTC."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from fastbandit.evaluation.shadow_comparison import Evidence


class Mean(Struct, frozen=True):
    """A mean reward, and the 95 % band around it (None where one value says nothing of it).

    `count` is how many chosen arms it is of; `pending` is the share of them whose reward may
    still come. Until then they count as their default.
    """

    count: int
    mean: float
    low: float | None
    high: float | None
    pending: float = 0.0


class VersionMean(Struct, frozen=True):
    """What a version of the model earned in the range."""

    version: int
    decisions: int
    reward: Mean


class Summary(Struct, frozen=True):
    """The numbers people look for first.

    `baseline` is of all decisions of version 0 that were read, in the range or not;
    `difference` is the range's mean less it, without the decisions of version 0.
    """

    decisions: int
    per_second: float
    reward: Mean | None
    baseline: Mean | None
    difference: Mean | None
    quality: float | None
    version: int | None


class Series(Struct, frozen=True):
    """What happened in each bucket of the range: one entry for each, None where nothing did."""

    starts: list[int]
    width_s: float
    decisions: list[int]
    per_second: list[float]
    reward: list[Mean | None]
    baseline: list[Mean | None]


class ArmFigures(Struct, frozen=True):
    """How often an arm was chosen, and what it earned."""

    id: str | int
    chosen: int
    share: float
    reward: Mean | None


class Arms(Struct, frozen=True):
    """Which arms win, among the latest `of` choices of the range.

    `is_cut` says that the range has more than those. `top_share` is the share of choices that
    the `top` arms got, a hundredth of all arms. `fresh` arms came within the range.
    """

    of: int
    is_cut: bool
    winners: list[ArmFigures]
    different: int
    all: int
    top: int
    top_share: float | None
    fresh: int
    fresh_chosen: int
    fresh_choices: int


class LatestDecision(Struct, frozen=True):
    """One of the latest decisions: when, by which version, and its first arm."""

    id: str
    at: int
    version: int
    arm: str | int


class DelayBin(Struct, frozen=True):
    """Counted rewards that came so many seconds after their decision (`to_s` None: or later)."""

    from_s: float
    to_s: float | None
    count: int


class StatusFigures(Struct, frozen=True):
    """How many rewards of the range were given a status, and by which rule."""

    status: str
    count: int
    share: float
    rule: str


class Rewards(Struct, frozen=True):
    """When rewards came, and what became of them."""

    delays: list[DelayBin]
    statuses: list[StatusFigures]


class Comparison(Struct, frozen=True):
    """The loss of something else, and the candidate's less it with its 95 % interval."""

    loss: float
    difference: float
    low: float | None = None
    high: float | None = None


class Candidate(Struct, frozen=True):
    """A version of the model that was published, or one that was rejected and why.

    Losses are of `held_out` interactions that it has not seen. It is compared with the version in
    service, with the mean reward and with each arm's. `curve` has the steps of training and the
    loss there.
    """

    version: int
    at: int | None
    interactions: int | None
    arms: int | None
    quality: float | None
    recall: float | None
    held_out: int | None
    loss: float | None
    in_service: Comparison | None
    constant: Comparison | None
    popularity: Comparison | None
    curve: list[tuple[float, float]]
    is_current: bool = False
    rejected: str | None = None


class Audit(Struct, frozen=True):
    """How close live choices of a version came to the best arm: 1 is the best, 0 a random one."""

    quality: float
    lowest: float
    version: int = 0
    count: int = 0


class Learner(Struct, frozen=True):
    """What the learner does now: it waits for `needed` fresh interactions, or trains.

    `error` says why it cannot; `seconds` is how long the last training took, and `lag_seconds` for
    how long a version had been due when it began the next.
    """

    state: str = "unknown"
    error: str = ""
    fresh: int | None = None
    needed: int | None = None
    seconds: float | None = None
    lag_seconds: float = 0.0


class Shadow(Struct, frozen=True):
    """How bandit and baseline compare; `command` lets the other one decide."""

    baseline: str
    decides: str
    command: str
    evidence: list[Evidence]


class Console(Struct, frozen=True):
    """Everything the page shows; `notes` say why a panel has nothing, by its name.

    `read` is the share of the log that the figures are of. `serving` is what the service
    itself measured: times of answers are in no log. `shadow` is there in shadow mode alone.
    `titles` are what people read in place of an id, of the arms that have one.
    """

    at: int
    minutes: int | None
    events: int
    read: float
    summary: Summary
    series: Series
    versions: list[VersionMean]
    arms: Arms
    rewards: Rewards
    candidates: list[Candidate]
    audit: Audit | None
    learner: Learner | None
    serving: dict[str, Any]
    notes: dict[str, str]
    shadow: Shadow | None = None
    latest: list[LatestDecision] = []
    titles: list[tuple[str | int, str]] = []
