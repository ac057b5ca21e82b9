"""Two tables that a service can start from: a log of decisions, and the arms, each by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.named_arms import NamedArms, arm_schema, named_arms
from fastbandit.arms.shared_texts import share_texts
from fastbandit.declaration import known_name
from fastbandit.errors import DataError
from fastbandit.evaluation.log_columns import LogColumns
from fastbandit.evaluation.tables import LogTable, read_log_table
from fastbandit.features.columns import Ignored
from fastbandit.features.schema import Schema
from fastbandit.features.table_files import header_of, read_table_file
from fastbandit.features.tables import Table

Kinds = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class LogAndArms:
    """A log whose arms are all in a table, and what the columns of both mean.

    `chosen` are the rows of the arms that were taken.
    """

    log: LogTable
    items: Table
    arms: NamedArms
    context: Schema
    chosen: NDArray[np.int64]

    @property
    def arm(self) -> Schema:
        """What the columns of the arms mean."""
        assert self.arms.kind.schema is not None
        return self.arms.kind.schema

    @property
    def reward_kind(self) -> str:
        return "binary" if np.isin(self.log.rewards, (0.0, 1.0)).all() else "real"

    @property
    def ids(self) -> list[Any]:
        """The ids of the arms, in the order of their rows."""
        return list(range(self.items.rows)) if self.arms.ids is None else self.arms.ids


def read_log_and_arms(
    log: Path, arms: Path, columns: LogColumns, *, arm_schema: Schema | None = None
) -> LogAndArms:
    """Read both tables; schemas that are not given are inferred, and corrected by their kinds."""
    items, kinds = read_table_file(arms), columns.kinds
    if columns.arm is None:
        columns = replace(columns, arm=_shared_key(items, header_of(log)))
    table = read_log_table(log, columns, is_judged=False)
    for name in kinds:
        known_name("column", name, (*table.contexts.names, *items.names))
    context = columns.schema
    if context is None:
        own = {name: kind for name, kind in kinds.items() if name in table.contexts.columns}
        context = Schema.infer(table.contexts, kinds=own)
    schema = _arm_schema(items, table.arm, kinds) if arm_schema is None else arm_schema
    fixed = (columns.schema is not None, arm_schema is not None)
    context, schema = share_texts(context, schema, table.contexts, items, fixed=fixed)
    named = named_arms(schema.table(items))
    known = list(range(items.rows)) if named.ids is None else named.ids
    chosen = table.chosen(known, arms=arms)
    return LogAndArms(table, replace(items, schema=schema), named, context, chosen)


def _shared_key(items: Table, header: Sequence[str]) -> str | None:
    """Return the column of ids that both tables have by the same name."""
    key = arm_schema(items).key
    return key if key in header else None


def _arm_schema(items: Table, arm: str, kinds: Kinds) -> Schema:
    """Infer what the columns of arms mean; ids stand in the one that the log names, if any."""
    key = arm if arm in items.columns else None
    found = arm_schema(items, key=key)
    own = {name: kind for name, kind in kinds.items() if name in items.columns}
    if found.key is None:
        raise DataError(
            f"A table of arms needs a column with another id in each row, such as {arm!r}: found "
            f"{', '.join(items.names)}. Name it as the log does, or id."
        )
    if not own:
        return found
    ids = Ignored(found.key, is_id=True, note="the ids of the arms")
    return Schema.infer(items, kinds={**own, found.key: ids})


def print_schemas(read: LogAndArms) -> None:
    """Print what the columns of both tables mean."""
    for what, schema in (("Contexts", read.context), ("Arms", read.arm)):
        click.echo(f"{what}, as they are read:\n\n{schema}\n")
