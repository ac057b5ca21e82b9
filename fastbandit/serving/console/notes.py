"""Says in one sentence why a panel has nothing to show."""

from __future__ import annotations

from datetime import UTC, datetime

import apsw

from fastbandit.serving.console.answer import Console
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
_READING = "{:.0%} of the log is read so far, newest first: earlier figures follow."
_NO_ARMS = "The catalogue has no arms yet: PUT some to /v1/arms."
_NO_AUDIT = (
    "No audit yet: once version 1 or a later one decides, the learner compares a sample of its "
    "choices with the best arm."
)
_OTHERS_AUDIT = "No audit on this machine: the learner that holds the lease keeps its own."
_NOT_COMPARED = "No decision {} names an arm of both the bandit and the baseline."
_LAST_MADE = "SELECT at FROM main.decisions ORDER BY seq DESC LIMIT 1"


class Notes:
    """Finds the reasons, through the connection of the tally.

    Machines that share a log have one learner at work, whose files the others do not see.
    """

    def __init__(self, connection: apsw.Connection, shown: Console, *, is_shared: bool) -> None:
        self._connection, self._shown, self._is_shared = connection, shown, is_shared
        self._silence = _ELSEWHERE if is_shared else _NOT_REPORTED
        self._range = "so far" if shown.minutes is None else f"in the last {_span(shown.minutes)}"
        rows = ask(connection, _LAST_MADE)
        self._last_made = rows[0][0] if rows else None

    def by_panel(self, statuses: dict[str, int]) -> dict[str, str]:
        """Return why panels have nothing to show, by their names; rewards came with `statuses`."""
        shown = self._shown
        decisions = None if shown.summary.decisions else self._no_decisions()
        rewards = None if statuses.get("counted") else self._no_rewards(statuses)
        is_updated = any(one.version > 0 and one.rejected is None for one in shown.candidates)
        is_compared = shown.shadow is None or shown.shadow.evidence
        found = {
            "reading": None if shown.read >= 1 else _READING.format(shown.read),
            "reward": decisions or rewards,
            "baseline": None if shown.summary.baseline else self._no_baseline(),
            "traffic": decisions,
            "arms": _NO_ARMS if shown.arms.all == shown.arms.of == 0 else decisions,
            "rewards": rewards,
            "dropped": _dropped(statuses),
            "models": None if is_updated else self._no_update(),
            "audit": None if shown.audit else _OTHERS_AUDIT if self._is_shared else _NO_AUDIT,
            "learner": None if shown.learner else f"The learner has not reported: {self._silence}.",
            "shadow": None if is_compared else _NOT_COMPARED.format(self._range),
        }
        return {name: note for name, note in found.items() if note is not None}

    def _no_decisions(self) -> str:
        if self._last_made is None:
            return "No decision has been made yet: the first POST to /v1/select shows here."
        return f"No decision was made {self._range}: the last one was at {_clock(self._last_made)}."

    def _no_rewards(self, statuses: dict[str, int]) -> str:
        if dropped := _dropped(statuses):
            return f"Rewards came {self._range}, but none counts: {dropped}"
        if self._last_made is None:
            return "No reward can come before the first decision is made."
        came = "has come yet" if self._range == "so far" else f"came {self._range}"
        return f"No reward {came}: {self._waiting()}"

    def _no_baseline(self) -> str:
        if self._shown.read < 1:
            return "The baseline, version 0, is in a part of the log that is not read yet."
        if self._last_made is None:
            return "The baseline is what version 0 earns: it has not decided yet."
        return "The log holds no decision of version 0, so there is no baseline to compare with."

    def _no_update(self) -> str:
        learner, none = self._shown.learner, "No update has been published"
        if any(one.rejected is not None for one in self._shown.candidates):
            return f"{none}: each candidate was rejected, for the reason below."
        if learner is None:
            return f"{none}, and the learner has not reported: {self._silence}."
        if learner.fresh is not None and learner.needed is not None:
            came = f"{learner.fresh:,} of {learner.needed:,} fresh interactions have come"
            return f"{none} yet: {came}."
        return f"{none} yet: the learner waits for fresh interactions."

    def _waiting(self) -> str:
        ((count, until, low, high),) = ask(self._connection, _WAITING, (1000 * self._shown.at,))
        if not count:
            return "the wait of all decisions is over, and each counts as its default."
        many = f"{count:,}" if count <= _MOST_COUNTED else f"more than {_MOST_COUNTED:,}"
        default = f"{low:g}" if low == high else "its default"
        waits = "decision waits" if count == 1 else "decisions wait"
        return f"{many} {waits} for one, the first counts as {default} at {_clock(until)}."


def _dropped(statuses: dict[str, int]) -> str | None:
    parts = [
        f"{statuses[status]:,} {status} ({_begun(RULES[status])})"
        for status in REWARD_STATUSES
        if status != "counted" and statuses.get(status)
    ]
    return "; ".join(parts) + "." if parts else None


def _span(minutes: int) -> str:
    named = {1: "minute", 60: "hour", 1440: "day"}
    return named.get(minutes, f"{minutes} minutes")


def _clock(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1_000_000, UTC):%Y-%m-%d %H:%M} UTC"


def _begun(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].removesuffix(".")
