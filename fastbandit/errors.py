"""Every error fastbandit raises on purpose.

FastbanditError
├── InputError (ValueError)         what was handed in cannot be used
│   ├── ShapeError                  the wrong number of rows, columns or values
│   ├── NotFiniteError              NaN or infinite numbers
│   ├── RewardError                 rewards that the likelihood cannot explain
│   └── EligibilityError            no arm may be chosen
├── UnknownArmError (KeyError)      an id that the catalogue does not hold
├── DuplicateArmError (ValueError)  an id that the catalogue holds already
├── SettingError (ValueError)       a name or number that no part understands
├── SnapshotError (OSError)         a saved bandit that cannot be trusted
├── DataError (OSError)             a data file that is missing, damaged or of another layout
└── MissingExtraError (ImportError) a part whose optional dependency is not installed
"""

from __future__ import annotations


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


class DataError(FastbanditError, OSError):
    """A data file that is missing, damaged or of another layout."""


class MissingExtraError(FastbanditError, ImportError):
    """A part whose optional dependency is not installed."""
