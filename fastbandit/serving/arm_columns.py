"""Columns of the arms in answers, and the one that people read: a title beside the id."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fastbandit.arms.columns import Column
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.serving.console.answer import Console
from fastbandit.serving.problems import wrong_field
from fastbandit.serving.schemas import SelectAnswer

_TITLES = ("title", "name", "label")
_LONGEST = 120
_ADD = "Name it in arms.columns or arms.title, and begin with a new data folder"


def check_columns(bandit: FrozenBandit, names: Sequence[str]) -> None:
    """Reject columns that the arms do not have."""
    known = tuple(bandit.columns or ())
    for n, name in enumerate(names):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise wrong_field(
                f"Columns of an answer need to be the arms' own: they have "
                f"{', '.join(known) or 'none'}.",
                fix=f"Did you mean {near[0]!r}?" if near else f"Leave it out. {_ADD} to have it.",
                field=f"columns[{n}]",
                value=name,
            )


def add_columns(answers: Iterable[SelectAnswer], bandit: FrozenBandit, names: list[str]) -> None:
    """Let answers have columns of their arms as they are now: None for an arm that is gone."""
    rows = bandit.parts[1].rows
    assert rows.columns is not None, "they were checked"
    columns = {name: rows.columns[name] for name in names}
    for one in answers:
        one.columns = [
            None if row < 0 else {name: column.value(row) for name, column in columns.items()}
            for row in rows.live_rows_of(one.arms).tolist()
        ]


def titles_of(bandit: FrozenBandit, arms: Iterable[Any], *, setting: str) -> dict[Any, str]:
    """Return the titles of arms that have one, also of arms that are gone.

    The column is the one that the setting names, else a text that is called as titles are.
    """
    rows = bandit.parts[1].rows
    columns: Mapping[str, Column] = rows.columns or {}
    texts = {name.lower(): name for name, one in columns.items() if one.kind == "text"}
    name = setting or next((texts[title] for title in _TITLES if title in texts), "")
    if name not in columns:
        return {}
    known = [arm for arm in dict.fromkeys(arms) if arm in rows.ids]
    values = map(columns[name].value, rows.ids.rows(known).tolist())
    return {
        arm: _shortened(str(v)) for arm, v in zip(known, values, strict=True) if v not in ("", None)
    }


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def with_titles(body: bytes, bandit: FrozenBandit, setting: str) -> bytes:
    """Return what the console shows with the titles of its arms, where they have any."""
    if not bandit.columns:
        return body
    console = msgspec.json.decode(body, type=Console)
    arms = [*(arm.id for arm in console.arms.winners), *(one.arm for one in console.latest)]
    titles = titles_of(bandit, arms, setting=setting)
    return msgspec.json.encode(msgspec.structs.replace(console, titles=[*titles.items()]))
