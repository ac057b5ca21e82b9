"""What a log says of columns of contexts and arms: which are secret, and what was dropped.

It stands in the log, so that a copy of it, or a command without the settings of the service, knows
as well. A column that was declared secret once stays so in its log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from msgspec import structs

from fastbandit.settings.service import Config
from fastbandit.storage.events import Arm

SECRET_COLUMNS = "SELECT owner, name FROM secret_columns ORDER BY owner, name"


DROPPED = "SELECT name, until FROM dropped_columns"
FORGOTTEN = "SELECT seq FROM forgotten_decisions"


@dataclass(frozen=True)
class Marks:
    """What left a log in ways that training data and copies of it have to follow.

    Events up to the number `gone` are lost. Of the decisions `forgotten` nothing may be learned. Of
    decisions up to a number, columns were `dropped`, by name.
    """

    gone: int = 0
    forgotten: frozenset[int] = frozenset()
    dropped: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SecretNames:
    """The names of columns that are neither shown nor exported."""

    context: frozenset[str] = frozenset()
    arms: frozenset[str] = frozenset()

    @staticmethod
    def of(config: Config) -> SecretNames:
        """Return what the schemas of a service say."""
        schemas = config.context.read_schema(), config.arms.read_schema()
        return SecretNames(*(frozenset() if one is None else one.secret for one in schemas))

    @staticmethod
    def read(rows: Iterable[tuple[str, str]]) -> SecretNames:
        """Return what the rows of a log say."""
        found = {"context": set[str](), "arms": set[str]()}
        for owner, name in rows:
            found[owner].add(name)
        return SecretNames(frozenset(found["context"]), frozenset(found["arms"]))

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What a log has to hold: whose each column is, and its name."""
        both = (("context", self.context), ("arms", self.arms))
        return [(owner, name) for owner, names in both for name in sorted(names)]

    def public_context(self, context: Any) -> Any:
        """Return a context without what is secret."""
        return _without(context, self.context)

    def public_features(self, features: Any) -> Any:
        """Return the features of an arm without what is secret."""
        return _without(features, self.arms)

    def public_offers(self, offered: list[Arm] | None) -> list[Arm] | None:
        """Return the arms of a request without what is secret of them."""
        if not offered or not self.arms:
            return offered
        return [structs.replace(a, features=self.public_features(a.features)) for a in offered]


NOTHING = SecretNames()


@runtime_checkable
class MarksColumns(Protocol):
    """A log that knows which of its columns are secret, and what was dropped."""

    def secret(self) -> SecretNames: ...

    def marks(self) -> Marks: ...


def _without(values: Any, names: frozenset[str]) -> Any:
    if not names or not isinstance(values, dict):
        return values
    return {name: value for name, value in values.items() if name not in names}
