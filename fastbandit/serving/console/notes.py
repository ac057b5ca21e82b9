"""Says in one sentence why a panel has nothing to show."""

from __future__ import annotations

from datetime import UTC, datetime

import apsw

from fastbandit.serving.console.answer import Arms, Audit, Candidate, Learner, Shadow
from fastbandit.serving.console.buckets import ask
from fastbandit.storage.events import REWARD_STATUSES

RULES = {
    "counted": "Came in time, for an arm that was chosen: it is learned from.",
    "duplicate": "Came again with the same value: the first one counts, so a retry is safe.",
    "conflicting": "Came again with another value: the first one counts.",
    "late": "Came after the decision's wait was over: the default counts instead.",
    "unknown": "Names a decision that the log does not hold.",
    "unknown arm": "Names an arm that the decision did not choose.",
}
"""What each status of a reward means."""
_MOST_COUNTED = 10_000
_WAITING = f"""
SELECT count(*), min(until), min(default_reward), max(default_reward) FROM (
    SELECT until, default_reward FROM main.decisions ORDER BY seq DESC LIMIT {_MOST_COUNTED + 1}
) WHERE until >= ?
"""
_NOT_REPORTED = "it is off (learn.enabled), or has just started"
_ELSEWHERE = "it is off here (learn.enabled), or another machine's holds the lease"
_LAST_MADE = "SELECT at FROM main.decisions ORDER BY seq DESC LIMIT 1"


class Notes:
    """Finds the reasons, through the connection of the tally.

    Machines that share a log have one learner at work, whose files the others do not see.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        minutes: int | None,
        now: int,
        is_shared: bool = False,
    ) -> None:
        self._connection, self._now, self._is_shared = connection, now, is_shared
        self._silence = _ELSEWHERE if is_shared else _NOT_REPORTED
        self._range = "so far" if minutes is None else f"in the last {_span(minutes)}"
        rows = ask(connection, _LAST_MADE)
        self._last_made = rows[0][0] if rows else None

    def decisions(self, count: int) -> str | None:
        """Say why there is no decision to show."""
        if count:
            return None
        if self._last_made is None:
            return "No decision has been made yet: the first POST to /v1/select shows here."
        return f"No decision was made {self._range}: the last one was at {_clock(self._last_made)}."

    def rewards(self, statuses: dict[str, int]) -> str | None:
        """Say why no reward counts."""
        if statuses.get("counted"):
            return None
        dropped = self.dropped(statuses)
        if dropped:
            return f"Rewards came {self._range}, but none counts: {dropped}"
        if self._last_made is None:
            return "No reward can come before the first decision is made."
        came = (
            "No reward has come yet" if self._range == "so far" else f"No reward came {self._range}"
        )
        return f"{came}: {self._waiting()}"

    def dropped(self, statuses: dict[str, int]) -> str | None:
        """Return the rules by which rewards do not count."""
        parts = [
            f"{statuses[status]:,} {status} ({_begun(RULES[status])})"
            for status in REWARD_STATUSES
            if status != "counted" and statuses.get(status)
        ]
        return "; ".join(parts) + "." if parts else None

    def arms(self, arms: Arms, decisions: str | None) -> str | None:
        """Say why there is no arm to show."""
        if arms.all == 0 and arms.of == 0:
            return "The catalogue has no arms yet: PUT some to /v1/arms."
        return decisions

    def baseline(self, has_baseline: bool, *, is_read: bool) -> str | None:
        """Say why there is nothing to compare with."""
        if has_baseline:
            return None
        if not is_read:
            return "The baseline, version 0, is in a part of the log that is not read yet."
        if self._last_made is None:
            return "The baseline is what version 0 earns: it has not decided yet."
        return "The log holds no decision of version 0, so there is no baseline to compare with."

    def models(self, candidates: list[Candidate], learner: Learner | None) -> str | None:
        """Say why no version was published."""
        if any(one.version > 0 and one.rejected is None for one in candidates):
            return None
        if any(one.rejected is not None for one in candidates):
            return (
                "No update has been published: each candidate was rejected, for the reason below."
            )
        if learner is None:
            return (
                f"No update has been published, and the learner has not reported: {self._silence}."
            )
        if learner.fresh is not None and learner.needed is not None:
            return (
                f"No update has been published yet: {learner.fresh:,} of {learner.needed:,} fresh "
                f"interactions have come."
            )
        return "No update has been published yet: the learner waits for fresh interactions."

    def audit(self, audit: Audit | None) -> str | None:
        """Say why no audit is shown."""
        if audit is not None:
            return None
        if self._is_shared:
            return "No audit on this machine: the learner that holds the lease keeps its own."
        return (
            "No audit yet: once version 1 or a later one decides, the learner compares a sample "
            "of its choices with the best arm."
        )

    def shadow(self, shadow: Shadow | None) -> str | None:
        """Say why bandit and baseline cannot be compared."""
        if shadow is None or shadow.evidence:
            return None
        return f"No decision {self._range} names an arm of both the bandit and the baseline."

    def learner(self, learner: Learner | None) -> str | None:
        """Say why the learner is not shown."""
        if learner is not None:
            return None
        return f"The learner has not reported: {self._silence}."

    def _waiting(self) -> str:
        rows = ask(self._connection, _WAITING, (self._now,))
        count, until, low, high = rows[0]
        if not count:
            return "the wait of all decisions is over, and each counts as its default."
        many = f"{count:,}" if count <= _MOST_COUNTED else f"more than {_MOST_COUNTED:,}"
        default = f"{low:g}" if low == high else "its default"
        waits = "decision waits" if count == 1 else "decisions wait"
        return f"{many} {waits} for one, the first counts as {default} at {_clock(until)}."


def reading(share: float) -> str | None:
    """Return how much of the log the figures are of, where that is not all."""
    if share >= 1:
        return None
    return f"{share:.0%} of the log is read so far, newest first: earlier figures follow."


def _span(minutes: int) -> str:
    named = {1: "minute", 60: "hour", 1440: "day"}
    return named.get(minutes, f"{minutes} minutes")


def _clock(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1_000_000, UTC):%Y-%m-%d %H:%M} UTC"


def _begun(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].removesuffix(".")
