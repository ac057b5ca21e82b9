"""One request, sent until an answer comes that can be used or the deadline has passed.

A call is a generator: it yields what it wants done (a request sent, a pause, work on the
disk) and is sent what came of it. So it is written once for the client that waits and for
the one that awaits, and tests drive it without a clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from random import Random
from threading import Lock
from time import monotonic
from typing import Any, TypeAlias, TypeVar

from msgspec import MsgspecError, json

from fastbandit.client.deciders import Deciders
from fastbandit.client.retries import Answer, NoAnswer, Retries, is_worth_another, seconds_until
from fastbandit.errors import ServiceError, ServiceUnavailable, SettingError

_T = TypeVar("_T")


@dataclass(frozen=True)
class Send:
    """Send a request, and wait so many seconds for the whole of its answer."""

    method: str
    url: str
    body: bytes | None
    seconds: float


@dataclass(frozen=True)
class Pause:
    """Let so many seconds pass."""

    seconds: float


@dataclass(frozen=True)
class OnDisk:
    """Do some work that waits for the disk."""

    work: Callable[[], Any]


Step: TypeAlias = Send | Pause | OnDisk
Call: TypeAlias = Generator[Step, Any, _T]


class Requester:
    """Sends requests to one of some addresses, and counts what a caller may not notice."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        deadline_seconds: float,
        retries: Retries,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if deadline_seconds <= 0:
            raise SettingError(
                f"A call needs some time: got deadline_seconds={deadline_seconds}. Give the "
                f"seconds after which an answer is of no use."
            )
        self._deciders, self._deadline_seconds = Deciders(urls, clock=clock), deadline_seconds
        self._retries, self._clock, self._rng = retries, clock, Random(retries.seed)
        self._counts: Counter[str] = Counter()
        self._lock = Lock()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        read: Callable[[bytes], _T],
        end: float | None = None,
        tries: int | None = None,
    ) -> Call[_T]:
        """Send a request until an answer comes that can be used, or give up at the deadline.

        A try is one round of all deciders, without a pause between them.
        """
        end = self.end() if end is None else end
        tries, share = tries or self._retries.tries, self._retries.share
        outcome: Answer | NoAnswer = NoAnswer("no time was left to ask")
        for tried in range(tries):
            urls, rests = self._deciders.order(), []
            for n, url in enumerate(urls):
                left = end - self._clock()
                if left <= 0:
                    raise self._unavailable(outcome)
                is_last = tried + 1 == tries and n + 1 == len(urls)
                seconds = left if is_last else left * share
                self.count("retries", int(tried + n > 0))
                outcome = yield Send(method, url + path, body, seconds)
                if isinstance(outcome, Answer) and 200 <= outcome.status < 300:
                    try:
                        found = read(outcome.body)
                    except (MsgspecError, ValueError) as error:
                        outcome = NoAnswer(f"an answer that cannot be read: {error}")
                    else:
                        self._deciders.note(url, is_well=True)
                        return found
                rests.append(self._note(url, outcome))
            pause = min(rests) + self._retries.pause(tried, self._rng)
            if tried + 1 == tries or self._clock() + pause >= end:
                break
            yield Pause(pause)
        raise self._unavailable(outcome)

    def _note(self, url: str, outcome: Answer | NoAnswer) -> float:
        """Note a failure, and return the seconds that it asks to wait; raise a rejection."""
        if not is_worth_another(outcome):
            raise _rejection(outcome, url)
        rest = seconds_until(outcome.retry_after) if isinstance(outcome, Answer) else 0.0
        self._deciders.note(url, is_well=False, rest=rest)
        return rest

    def _unavailable(self, outcome: Answer | NoAnswer) -> ServiceUnavailable:
        status, problem = _problem_in(outcome)
        why = outcome.why if isinstance(outcome, NoAnswer) else problem.get("detail", "")
        last = f"{status} {why}".strip() if status else why
        return ServiceUnavailable(
            f"The decision service needs to answer in time: {self._deciders} did not (the last "
            f"try: {last}). See that it is ready; a fallback for selects and a spool for rewards "
            f"bridge such times.",
            status=status,
            problem=problem,
        )

    @property
    def counts(self) -> dict[str, int]:
        """How often each thing happened that a caller may not have noticed."""
        with self._lock:
            return dict(self._counts)

    def count(self, what: str, number: int = 1) -> None:
        if number:
            with self._lock:
                self._counts[what] += number

    def end(self, seconds: float | None = None) -> float:
        """Return the point on the clock at which a call that begins now must end."""
        return self._clock() + (self._deadline_seconds if seconds is None else seconds)


def _rejection(outcome: Answer | NoAnswer, url: str) -> ServiceError:
    status, problem = _problem_in(outcome)
    said = problem.get("detail") or f"The service answered {status} to this request."
    fix = problem.get("fix") or f"Check that {url} is the service's address."
    return ServiceError(f"{said} {fix}", status=status, problem=problem)


def _problem_in(outcome: Answer | NoAnswer) -> tuple[int, dict[str, Any]]:
    """Return the status, and what the service said of it (RFC 9457) where it said something."""
    if isinstance(outcome, NoAnswer):
        return 0, {}
    try:
        return outcome.status, json.decode(outcome.body, type=dict[str, Any])
    except (MsgspecError, ValueError):
        return outcome.status, {}
