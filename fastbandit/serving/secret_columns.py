"""The secret columns of a service: learned from, and repeated in no answer.

A column may be declared secret after the first version was made: what the settings say holds for
versions that do not know of it, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from fastbandit.features.schema import Schema
from fastbandit.serving.problems import Rejection
from fastbandit.serving.schemas import SelectRequest
from fastbandit.settings.service import Config

NOT_SHOWN = "not shown: columns of this service are secret"
_OF_COLUMN = re.compile(r"(?:context|contexts\[\d+\]|arms\[\d+\]\.features)\.(.+)\Z", re.DOTALL)
_OPEN = {*SelectRequest.__struct_fields__} - {"context", "contexts", "arms"}


class SecretColumns:
    """What a service does not repeat of contexts and arms."""

    def __init__(self, config: Config) -> None:
        self._declared = {
            "context": config.context.read_schema(),
            "arms": config.arms.read_schema(),
        }
        self._marked: dict[str, tuple[Schema, Schema]] = {}
        found = [one for one in self._declared.values() if one is not None]
        self.names = frozenset[str]().union(*(one.secret for one in found))
        self._known = frozenset(name for one in found for name in one.names)

    def context(self, schema: Schema | None) -> Schema | None:
        """Return the schema of a version's contexts with what the settings say is secret."""
        return self._of("context", schema)

    def arms(self, schema: Schema | None) -> Schema | None:
        """Return the schema of a version's arms with what the settings say is secret."""
        return self._of("arms", schema)

    def _of(self, whose: str, schema: Schema | None) -> Schema | None:
        if schema is None or not self.names:
            return schema
        known = self._marked.get(whose)
        if known is None or known[0] is not schema:
            known = self._marked[whose] = schema, schema.marked_as(self._declared[whose])
        return known[1]

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Let no rejection repeat what may be a secret value: of its own column, or around it."""
        try:
            yield
        except Rejection as rejection:
            problem = rejection.problem
            if self.names and problem.value is not None and not self._is_open(problem.field or ""):
                problem.value = NOT_SHOWN
            raise

    def _is_open(self, field: str) -> bool:
        found = _OF_COLUMN.match(field)
        if found:
            return found[1] in self._known - self.names
        return re.split(r"[.\[]", field)[0] in _OPEN
