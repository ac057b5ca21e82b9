"""Draw how values of columns become numbers, by the columns themselves: `make pictures`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pictures import FOLDER, Frame, Picture, draw_legend, line_of

from fastbandit import Schema
from fastbandit.features.columns import Number
from fastbandit.features.text_columns import Text

LEFTS = (12, 362)
WIDTH, HEIGHT, TOP = 326, 230, 34
TITLES = ("The Matrix", "The Godfather", "The Lion King", "The Godfather Part II")


def encoded(column: Any, values: list[Any]) -> NDArray[np.float32]:
    return Schema((column,)).encode({column.name: values})


def panel(picture: Any, number: int, said: str, low: list[float], high: list[float]) -> Any:
    """Draw an empty frame with its heading."""
    frame = Frame(np.array(low), np.array(high), LEFTS[number], TOP, WIDTH, HEIGHT)
    picture.path(frame.edge(), "line", width=1)
    picture.text(LEFTS[number], 24, said, kind="head")
    return frame


def draw_number() -> None:
    """Draw what a number is encoded as, plain and by its logarithm, and where it is cut."""
    rng = np.random.default_rng(0)
    prices = np.round(np.exp(rng.normal(3, 1, 400)), 2)
    picture = Picture(700, 330)
    most = 400.0
    for number, log in enumerate((False, True)):
        column = Number("price", log=log).fitted(prices.tolist())
        said = "log = true" if log else "log = false"
        frame = panel(picture, number, f"A price, {said}", [0, -6], [most, 6])
        line = np.linspace(0, most, 400)
        curve = np.stack([line, encoded(column, line.tolist())[:, 1]], axis=1)
        for edge in (-5.0, 5.0):
            ends = np.array([[0, edge], [most, edge]])
            picture.path(line_of(frame(ends)), "line", dashed=True)
        picture.path(line_of(frame(curve)), "one", width=2)
        seen = prices[prices < most][:150]
        dots = np.stack([seen, encoded(column, seen.tolist())[:, 1]], axis=1)
        picture.dots(frame(dots), "two", width=4)
        picture.text(LEFTS[number], 281, "0", kind="soft")
        picture.text(LEFTS[number] + WIDTH, 281, f"{most:.0f}", kind="soft", at="end")
    draw_legend(
        picture,
        [("two", 5, "a price"), ("one", 4, "its number"), ("line", 4, "±5: cut here (dashed)")],
    )
    picture.save("feature-number", title="A price as a number: plain, and by its logarithm")


def draw_date() -> None:
    """Draw the trend of dates, and the cycle of their day."""
    first = datetime(2024, 1, 1, tzinfo=UTC)
    hours = [(first + timedelta(hours=number)).isoformat() for number in range(14 * 24)]
    schema = Schema.infer({"came": hours}, kinds={"came": "date"})
    numbers = schema.encode({"came": hours})
    picture = Picture(700, 330)
    days = np.arange(len(hours)) / 24
    frame = panel(picture, 0, "Fourteen days: trend, day and week", [0, -2], [14, 2])
    for column, kind in ((1, "two"), (2, "one"), (4, "three")):
        picture.path(line_of(frame(np.stack([days, numbers[:, column]], axis=1))), kind, width=1.5)
    picture.text(LEFTS[0], 281, "1 January", kind="soft")
    picture.text(LEFTS[0] + WIDTH, 281, "14 January", kind="soft", at="end")
    frame = panel(picture, 1, "A day is a circle: 23:00 is next to 0:00", [-2, -1.41], [2, 1.41])
    circle = frame(numbers[:24, 2:4].astype(float))
    picture.dots(circle, "one", width=6)
    for hour in (0, 6, 12, 18, 23):
        x, y = circle[hour]
        picture.text(x + 8, y + 4, f"{hour}:00")
    legend = [("two", 4, "trend"), ("one", 4, "day (sine)"), ("three", 4, "week (sine)")]
    draw_legend(picture, legend)
    picture.save("feature-date", title="A date as a trend and as places in cycles")


def draw_text() -> None:
    """Draw the hashed words of some titles, and how much each word counts."""
    column = Text("title", dim=16).fitted([f"The film {word}" for word in "abcdefgh"] + [*TITLES])
    rows = encoded(column, [*TITLES])[:, 1:]
    picture = Picture(700, 40 + 44 * len(TITLES))
    picture.text(12, 22, "Titles as 16 numbers: alike where they share words", kind="head")
    for row, title in enumerate(TITLES):
        y = 66.0 + 44 * row
        picture.text(12, y, title)
        picture.path(f"M190 {y - 4:.0f}H690", "line", width=1)
        for place, value in enumerate(rows[row].tolist()):
            if value:
                x = 206 + 31 * place
                kind = "one" if value > 0 else "two"
                picture.path(f"M{x} {y - 4:.0f}v{-18 * value:.1f}", kind, width=14)
    picture.save("feature-text", title="Words of titles, hashed, rare ones counting more")


def draw_category() -> None:
    """Draw the numbers of levels, of one never seen and of none, and hashed ones."""
    picture = Picture(700, 260)
    plain = Schema.from_dict(
        {"columns": {"device": {"kind": "category", "levels": ["laptop", "phone", "tv"]}}}
    )
    hashed = Schema.from_dict({"columns": {"device": {"kind": "category", "hashed": 8}}})
    values = ["laptop", "phone", "tv", "fridge", "car", None]
    heads = ("none", "others", "laptop", "phone", "tv")
    picture.text(12, 22, "levels", kind="head")
    picture.text(420, 22, "hashed = 8", kind="head")
    for place, head in enumerate(heads):
        picture.text(115 + 58 * place, 48, head, kind="soft", at="middle")
    for row, value in enumerate(values):
        y = 76.0 + 30 * row
        picture.text(12, y, "no value" if value is None else value)
        for left, step, schema in ((115, 58, plain), (428, 32, hashed)):
            for place, number in enumerate(schema.encode_one({"device": value}).tolist()):
                spot = np.array([left + step * place, y - 4])
                if number:
                    kind = "one" if number > 0 else "two"
                    picture.dots(spot[None], kind, width=16 * abs(number))
                else:
                    picture.dots(spot[None], "line", width=4)
    picture.save("feature-category", title="Levels have a number each; others share one")


def main() -> None:
    """Draw all four."""
    FOLDER.mkdir(exist_ok=True)
    draw_number()
    draw_date()
    draw_text()
    draw_category()


if __name__ == "__main__":
    main()
