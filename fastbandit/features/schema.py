"""Schema: columns by name, each with a kind, and the one way from named values to numbers.

A schema is declared in TOML or JSON, or inferred from a table (`Schema.infer`), and then holds all
it takes to encode a value: levels, means, how rare words are. The order of columns never matters.
It needs neither torch nor pandas.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.cores import cores, in_parts
from fastbandit.declaration import part
from fastbandit.errors import DataError, SettingError, ValueOfColumnError
from fastbandit.features.column_settings import column_from, kind_of, settings_of
from fastbandit.features.columns import Column, Values, Write
from fastbandit.features.hashed_columns import hashed_writer
from fastbandit.features.mapping_columns import FeatureMapping
from fastbandit.features.tables import ABSENT, Table, gathered, gathered_row, lacks_some, table_of

_CHUNK = 8_192  # rows whose numbers stay near the processor
_MANY = 4 * _CHUNK  # from so many rows on, two threads: half of the work holds Python's lock


@part("features", name="schema")
class Schema:
    """Columns by name: what each means, and how its values become numbers."""

    columns: tuple[Any, ...]

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None or not self.dim:
            came = f"{twice!r} twice" if twice is not None else "none that is used"
            raise SettingError(
                f"A schema needs columns with names of their own: got {came}. Correct the columns."
            )
        opened = [c.name for c in self.columns if getattr(c, "takes_others", False)]
        if len(opened) > 1:
            raise SettingError(
                f"A schema needs at most one column that takes_others: got {opened}. Let the "
                f"others have a name of their own in each row."
            )

    # -- what it holds

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of their numbers."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def dim(self) -> int:
        """How many numbers a row becomes."""
        return sum(column.width for column in self.columns)

    @cached_property
    def spans(self) -> dict[str, slice]:
        """The numbers of each column that is used, by its name."""
        found, at = {}, 0
        for column in self.columns:
            if column.width:
                found[column.name] = slice(at, at + column.width)
            at += column.width
        return found

    @property
    def key(self) -> str | None:
        """The name of the column that holds ids of arms, None where there is none."""
        return next((c.name for c in self.columns if getattr(c, "is_id", False)), None)

    @cached_property
    def secret(self) -> frozenset[str]:
        """The names of columns whose values are neither shown nor exported."""
        return frozenset(column.name for column in self.columns if column.secret)

    @cached_property
    def drops(self) -> dict[str, int]:
        """After how many days a log drops values, by the names of columns of which it does."""
        return {c.name: c.drop_after_days for c in self.columns if c.drop_after_days}

    @cached_property
    def others(self) -> Any:
        """The column that takes all names which are no columns, None where there is none."""
        return next((c for c in self.columns if getattr(c, "takes_others", False)), None)

    @cached_property
    def can_grow(self) -> bool:
        """Whether a column learns new names from what comes."""
        return any(hasattr(column, "grown") for column in self.columns)

    def missing(self, name: str) -> NDArray[np.float32]:
        """Return the numbers of a column whose value is missing."""
        column = self[name]
        encoded = np.zeros(column.width, dtype=np.float32)
        column.fill([None], encoded[None])
        return encoded

    def __getitem__(self, name: str) -> Column:
        """Return the column of a name."""
        found: Column = next(column for column in self.columns if column.name == name)
        return found

    # -- from values to numbers

    def encode(self, raw: Any, *, what: str = "rows") -> NDArray[np.float32]:
        """Return named rows as numbers: (n, dim)."""
        table = self._checked(raw, what)
        encoded = np.zeros((table.rows, self.dim), dtype=np.float32)

        def fill(first: int, last: int) -> None:
            for start in range(first, last, _CHUNK):
                self._fill(table, start, encoded[start : min(start + _CHUNK, last)], what)

        in_parts(table.rows, fill, threads=min(cores(), 2) if table.rows >= _MANY else 1)
        return encoded

    def encode_batches(
        self, raw: Any, *, rows: int = _CHUNK, what: str = "rows"
    ) -> Iterator[NDArray[np.float32]]:
        """Yield named rows as numbers, so many rows at a time: what need not be held at once."""
        table = self._checked(raw, what)
        for first in range(0, table.rows, rows):
            encoded = np.zeros((min(rows, table.rows - first), self.dim), dtype=np.float32)
            self._fill(table, first, encoded, what)
            yield encoded

    def encode_one(self, row: Mapping[str, Any]) -> NDArray[np.float32]:
        """Return one row of named values as numbers: (dim,). The quickest way."""
        out, (plain, names, write_hashed) = np.zeros(self.dim, dtype=np.float32), self._writers
        if self.others is not None:
            row = gathered_row(row, self._own, into=self.others.name)
        if len(row) != len(self.columns):
            row = self._whole(row)
        try:
            for name, write in plain:
                write(row[name], out)
            if names:
                write_hashed([row[name] for name in names], out)
        except KeyError:
            self._whole(row)
            raise
        return out

    @cached_property
    def _writers(self) -> tuple[list[tuple[str, Write]], list[str], Callable[..., None]]:
        """What writes a value of each column into a row; those that are hashed are written last."""
        plain, hashed, at = [], [], 0
        for column in self.columns:
            if getattr(column, "is_hashed", False):
                hashed.append((at, column))
            else:
                plain.append((column.name, column.writer(at)))
            at += column.width
        return plain, [column.name for _, column in hashed], hashed_writer(hashed)

    def _whole(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with all names, by defaults; raise where one is missing or not known."""
        self._check(row, "contexts")
        return {**{column.name: column.default for column in self.columns}, **row}

    def _fill(self, table: Table, first: int, out: NDArray[np.float32], what: str) -> None:
        """Write rows of a table, from the first on, into rows of zeros."""
        rows = slice(first, first + len(out))
        spans = self.spans
        for column in (one for one in self.columns if one.width):
            name = column.name
            try:
                column.fill(self._values(column, table, rows, what), out[:, spans[name]])
            except ValueOfColumnError as error:
                if error.row is None:
                    raise
                row = first + error.row
                said = f"{error} (row {row} of the {what})"
                raise ValueOfColumnError(said, column=name, row=row) from None

    def _values(self, column: Column, table: Table, rows: slice, what: str) -> Values:
        if column.name not in table.columns:
            return [column.default] * (rows.stop - rows.start)
        values = table.values(column.name, rows)
        if lacks_some(table):
            if column.default is None and any(value is ABSENT for value in values):
                raise self._missing(column.name, what)
            values = [column.default if value is ABSENT else value for value in values]
        if table.is_text:
            values = [column.from_text(text) if text else None for text in values]
        return values

    def _checked(self, raw: Any, what: str) -> Table:
        table = self.gathered(raw, what=what)
        self._check(table.columns, what)
        return table

    def _check(self, names: Mapping[str, Any], what: str) -> None:
        for column in self.columns:
            if column.default is None and column.name not in names:
                raise self._missing(column.name, what)
        for name in names:
            if name not in self._known:
                raise self._unknown(name, what)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    @cached_property
    def _own(self) -> frozenset[str]:
        """The names that rows have for a column: all but that of the one that takes others."""
        return self._known - {None if self.others is None else self.others.name}

    def _missing(self, name: str, what: str) -> ValueOfColumnError:
        return ValueOfColumnError(
            f"The {what} need the column {name!r}: it is missing. Send it (null where there is no "
            f"value), or declare a default for it in the schema.",
            column=name,
        )

    def _unknown(self, name: str, what: str) -> ValueOfColumnError:
        known = ", ".join(self.names)
        known = known if len(known) <= 200 else f"{known[:200]}…"
        return ValueOfColumnError(
            f"The {what} need the columns of the schema ({known}): {name!r} is not one of them. "
            f"Leave it out, or declare it.",
            column=str(name),
        )

    # -- where it comes from, and goes

    @staticmethod
    def open(*, slots: int = 128, hashed: int = 32) -> Schema:
        """Return a schema that declares nothing: it takes any names, and learns to read them."""
        return Schema((FeatureMapping("others", True, slots=slots, hashed=hashed),))

    @staticmethod
    def infer(raw: Any, *, kinds: Mapping[str, str | Column] | None = None) -> Schema:
        """Return what each column of a table seems to mean; `kinds` correct it, by name."""
        from fastbandit.features.inference import infer

        return infer(table_of(raw, what="rows"), kinds or {})

    def fit(self, raw: Any) -> Schema:
        """Return the schema with what a table says of its columns: levels, means, rare words."""
        table = self._checked(raw, "rows")
        return Schema(tuple(fitted(column, table) for column in self.columns))

    def grown(self, raw: Any, *, what: str = "rows") -> Schema:
        """Return the schema with slots for new names and levels in rows: itself without such."""
        if not self.can_grow:
            return self
        table = self._checked(raw, what)
        columns = tuple(fitted(c, table) if hasattr(c, "grown") else c for c in self.columns)
        is_same = all(one is other for one, other in zip(columns, self.columns, strict=True))
        return self if is_same else Schema(columns)

    def without_unused(self, used: NDArray[np.bool_], declared: Schema | None) -> Schema:
        """Return the schema without names that were learned and of which no number is used.

        All that is used is read as before; so are names that another schema has declared.
        """
        own = {} if declared is None else {column.name: column for column in declared.columns}
        columns = [
            one.without_unused(used[self.spans[one.name]], own.get(one.name))
            if isinstance(one, FeatureMapping)
            else one
            for one in self.columns
        ]
        return Schema(tuple(columns))

    def gathered(self, raw: Any, *, what: str = "rows") -> Table:
        """Return rows as a table that has only columns of this schema, where it takes others."""
        if self.others is None:
            return table_of(raw, what=what)
        return gathered(raw, self._own, into=self.others.name, what=what)

    def table(self, raw: Any) -> Table:
        """Return rows that this schema reads: for `Bandit(arms=schema.table(frame))`."""
        return replace(self.gathered(raw), schema=self)

    def without(self, names: Sequence[str]) -> Schema:
        """Return the schema without some columns."""
        return Schema(tuple(column for column in self.columns if column.name not in names))

    def marked_as(self, other: Schema | None) -> Schema:
        """Return the schema with the secret columns of another, too."""
        more = frozenset() if other is None else other.secret - self.secret
        if not more:
            return self
        marked = (replace(c, secret=True) if c.name in more else c for c in self.columns)
        return Schema(tuple(marked))

    def as_dict(self) -> dict[str, Any]:
        """Return the schema as JSON values: its columns by name, what differs from defaults."""
        return {"columns": {column.name: settings_of(column) for column in self.columns}}

    @staticmethod
    def from_dict(written: Mapping[str, Any]) -> Schema:
        """Return the schema that JSON values, or TOML, describe."""
        columns = written.get("columns") if isinstance(written, Mapping) else None
        if not isinstance(columns, Mapping) or not columns:
            raise SettingError(
                "A schema needs a table of columns by name: got none. Write for example "
                '[columns.price] and below it kind = "number".'
            )
        return Schema(tuple(column_from(name, said) for name, said in columns.items()))

    def save(self, path: str | Path) -> None:
        """Write the schema as JSON."""
        from fastbandit.files.atomic import write_atomic

        text = json.dumps(self.as_dict(), ensure_ascii=False, indent=1)
        write_atomic(Path(path), f"{text}\n".encode())

    @staticmethod
    def load(path: str | Path) -> Schema:
        """Read a schema from a file in JSON or TOML."""
        found = Path(path)
        try:
            text = found.read_text(encoding="utf-8")
            is_toml = found.suffix == ".toml"
            written = tomllib.loads(text) if is_toml else json.loads(text)
        except (OSError, ValueError) as error:
            raise DataError(
                f"A schema needs a file in JSON or TOML that can be read: {found} cannot "
                f"({error}). Write it anew."
            ) from error
        return Schema.from_dict(written)

    def shape(self) -> dict[str, Any]:
        """Return the JSON schema of a row."""
        own = [column for column in self.columns if column is not self.others]
        return {
            "type": "object",
            "properties": {column.name: _shape(column) for column in own},
            "required": [column.name for column in own if column.default is None],
            "additionalProperties": self.others is not None,
        }

    # -- to look at

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return name, kind, encoding and reason of each column, as texts."""
        return [(c.name, kind_of(c), *_shown(c)) for c in self.columns]

    def __str__(self) -> str:
        head = ("column", "kind", "encoded as", "why")
        cells = [head, *(tuple(_short(cell) for cell in row) for row in self.rows())]
        widths = [max(len(row[n]) for row in cells) for n in range(len(head))]
        lines = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells)
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{one}</th>" for one in ("column", "kind", "encoded as", "why"))
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows()
        )
        return f"<table><tr>{head}</tr>{body}</table>"


def fitted(column: Any, table: Table) -> Any:
    """Return a column with what its values in a table say."""
    if column.name not in table.columns:
        return column
    values = table.values(column.name)
    if table.is_text:
        values = [column.from_text(text) if text else None for text in values]
    return column.fitted([v for v in values if v is not ABSENT] if lacks_some(table) else values)


def _shown(column: Any) -> tuple[str, str]:
    """Return how a column is encoded, and why, without values of one that is secret."""
    return ("secret", "") if column.secret else (column.says(), column.note)


def _shape(column: Any) -> dict[str, Any]:
    shape = {**column.shape(), "description": f"{kind_of(column)}: {_shown(column)[0]}"}
    return {k: v for k, v in shape.items() if k != "examples" or not column.secret}


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"
