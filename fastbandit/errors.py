"""Every error fastbandit raises on purpose.

FastbanditError
├── InputError (ValueError)         what was handed in cannot be used
│   ├── ShapeError                  the wrong number of rows, columns or values
│   ├── NotFiniteError              NaN or infinite numbers
│   ├── RewardError                 rewards that the likelihood cannot explain
│   ├── ValueOfColumnError          a value of another kind than its column, or a name too many
│   └── EligibilityError            no arm may be chosen
├── UnknownArmError (KeyError)      an id that the catalogue does not hold
├── DuplicateArmError (ValueError)  an id that the catalogue holds already
├── SettingError (ValueError)       a name or number that no part understands
├── SnapshotError (OSError)         a saved bandit that cannot be trusted
│   └── FormatError                 one that another version of fastbandit reads
├── LogError (OSError)              an event log that cannot be read, or written to
│   └── LogUnavailableError         its server cannot be reached: try again
│       └── LogTooSlowError         it did not answer in time: try less at a time
├── DataError (OSError)             a data file that is missing, damaged or of another layout
├── ServiceError (RuntimeError)     a request that the decision service rejected
│   └── ServiceUnavailable (ConnectionError)  no answer within the deadline
├── SpoolError (OSError)            a spool of rewards that cannot be read, or written to
│   └── SpoolFull                   more rewards wait than it may hold
└── MissingExtraError (ImportError) a part whose optional dependency is not installed
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class FastbanditError(Exception):
    """Anything fastbandit raises on purpose."""


class InputError(FastbanditError, ValueError):
    """What was handed in cannot be used."""


class ShapeError(InputError):
    """The wrong number of rows, columns or values."""


class NotFiniteError(InputError):
    """NaN or infinite numbers."""


class RewardError(InputError):
    """Rewards that the likelihood cannot explain."""


class ValueOfColumnError(InputError):
    """A value of another kind than its column, a name that is missing, or one too many."""

    def __init__(self, message: str, *, column: str = "", row: int | None = None) -> None:
        super().__init__(message)
        self.column, self.row = column, row

    def at(self, row: int) -> ValueOfColumnError:
        """Return the error with the number of its row, counted from 0."""
        return ValueOfColumnError(str(self), column=self.column, row=row)


class EligibilityError(InputError):
    """No arm may be chosen."""


class UnknownArmError(FastbanditError, KeyError):
    """An id that the catalogue does not hold."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0]) if self.args else ""


class DuplicateArmError(FastbanditError, ValueError):
    """An id that the catalogue holds already."""


class SettingError(FastbanditError, ValueError):
    """A name or number that no part understands."""


class SnapshotError(FastbanditError, OSError):
    """A saved bandit that cannot be trusted."""


class FormatError(SnapshotError):
    """A saved bandit of a format that another version of fastbandit reads."""


class LogError(FastbanditError, OSError):
    """An event log that cannot be read, or written to."""


class LogUnavailableError(LogError):
    """An event log whose server cannot be reached: try again."""


class LogTooSlowError(LogUnavailableError):
    """No answer of the log came in time: its server is busy, or what came is too large."""


class DataError(FastbanditError, OSError):
    """A data file that is missing, damaged or of another layout."""


class ServiceError(FastbanditError, RuntimeError):
    """A request that the decision service rejected.

    `status` is that of HTTP, 0 where no answer came. `problem` is what the service said of
    it: "title", "detail" and "fix", and often "field" and "value".
    """

    def __init__(
        self, message: str, *, status: int = 0, problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.problem = status, dict(problem or {})


class ServiceUnavailable(ServiceError, ConnectionError):  # noqa: N818  says what happened
    """No answer of the decision service within the deadline."""


class SpoolError(FastbanditError, OSError):
    """A spool of rewards that cannot be read, or written to."""


class SpoolFull(SpoolError):  # noqa: N818
    """More rewards wait than the spool may hold."""


class MissingExtraError(FastbanditError, ImportError):
    """A part whose optional dependency is not installed."""
