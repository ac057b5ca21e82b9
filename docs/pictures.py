"""Draw the pictures of the documentation, from real searches and models: `make pictures`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import contourpy
import numpy as np
import torch
from numpy.typing import NDArray

from fastbandit import Bandit, GeneratorSearch, GradientAscent, ThompsonSampling, UpperConfidence
from fastbandit.interfaces import Search
from fastbandit.noise.philox import decision_seeds
from fastbandit.policy import Policy
from fastbandit.reward.arm_constants import ArmConstants
from fastbandit.score import Score
from fastbandit.types import Inputs

FOLDER = Path(__file__).parent / "pictures"
LIGHT = "--ink:#263238;--soft:#78909c;--line:#b0bec5;--one:#00796b;--two:#d84315;--three:#3949ab"
DARK = "--ink:#e3e8ea;--soft:#9fb0b8;--line:#5b6b73;--one:#4db6ac;--two:#ff8a65;--three:#9fa8da"
STYLE = (
    f".fb{{{LIGHT};font:13px sans-serif;max-width:100%;height:auto}}"
    f"@media(prefers-color-scheme:dark){{.fb{{{DARK}}}}}"
    f"[data-md-color-scheme=default] .fb{{{LIGHT}}}[data-md-color-scheme=slate] .fb{{{DARK}}}"
    ".fb text{fill:var(--ink)}.fb .soft{fill:var(--soft)}.fb .head{font-weight:bold}"
    ".fb .one{stroke:var(--one)}.fb .two{stroke:var(--two)}.fb .three{stroke:var(--three)}"
    ".fb .line{stroke:var(--line)}.fb .ink{stroke:var(--ink)}"
    ".fb .dot{stroke:var(--ink);stroke-opacity:.35}"
    ".fb path,.fb rect,.fb circle{fill:none}"
    ".fb .hill{fill:var(--one);fill-opacity:.09;fill-rule:evenodd}"
    ".fb .box{stroke:var(--soft);fill:var(--soft);fill-opacity:.1}.fb .round{stroke-linecap:round}"
)
Points = NDArray[np.floating[Any]]
ROUNDS = 2 ** np.arange(8)


# -- drawing


@dataclass
class Picture:
    """An SVG under way, so many pixels wide and high."""

    width: int
    height: int
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, said: str, *, kind: str = "", at: str = "start") -> None:
        self.parts.append(
            f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{at}">{said}</text>'
        )

    def path(self, drawn: str, kind: str, *, width: float = 1.5, dashed: bool = False) -> None:
        dashes = ' stroke-dasharray="4 4"' if dashed else ""
        self.parts.append(f'<path d="{drawn}" class="{kind}" stroke-width="{width:g}"{dashes}/>')

    def dots(self, points: Points, kind: str, *, width: float) -> None:
        self.path("".join(f"M{x:.0f} {y:.0f}h0" for x, y in points), f"{kind} round", width=width)

    def ring(self, point: Points, kind: str, *, radius: float = 7) -> None:
        x, y = point
        self.parts.append(
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius:g}" class="{kind}" stroke-width="2.5"/>'
        )

    def box(self, x: float, y: float, width: float, lines: Sequence[str]) -> None:
        """Draw a box whose first line is its name."""
        height = 14 + 17 * len(lines)
        self.parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height}" rx="6" '
            f'class="box"/>'
        )
        for number, line in enumerate(lines):
            kind = "soft" if number else "head"
            self.text(x + width / 2, y + 21 + 17 * number, line, kind=kind, at="middle")

    def arrow(self, *points: tuple[float, float], kind: str = "ink", dashed: bool = False) -> None:
        """Draw a line through points, with a head at the last."""
        (x, y), (end_x, end_y) = points[-2], points[-1]
        way = np.array([end_x - x, end_y - y]) / np.hypot(end_x - x, end_y - y)
        side = np.array([-way[1], way[0]])
        left, right = (np.array(points[-1]) - 8 * way + sign * 4 * side for sign in (1, -1))
        self.path(line_of(np.array(points)), kind, dashed=dashed)
        self.path(line_of(np.array([left, points[-1], right])), kind)

    def save(self, name: str, *, title: str) -> None:
        inside = "".join(self.parts)
        text = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="fb" width="{self.width}" '
            f'viewBox="0 0 {self.width} {self.height}"><title>{title}</title>'
            f"<style>{STYLE}</style>{inside}</svg>\n"
        )
        beside = FOLDER / f"{name}.svg.new"
        beside.write_text(text, encoding="utf-8")
        beside.replace(FOLDER / f"{name}.svg")


def line_of(points: Points) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


@dataclass(frozen=True)
class Frame:
    """Where values lie on a picture: a rectangle of values in one of pixels."""

    low: Points
    high: Points
    left: float
    top: float
    width: float
    height: float

    def __call__(self, values: Points) -> Points:
        shares = (np.asarray(values) - self.low) / (self.high - self.low)
        corner, size = np.array([self.left, self.top]), np.array([self.width, self.height])
        return np.asarray(corner + size * np.stack([shares[..., 0], 1 - shares[..., 1]], axis=-1))

    def edge(self) -> str:
        right, bottom = self.left + self.width, self.top + self.height
        return f"M{self.left} {self.top}H{right}V{bottom}H{self.left}Z"


# -- a search, watched


@dataclass
class Watched:
    """A score that remembers where it was asked."""

    score: Score
    scored: list[Points] = field(default_factory=list)
    climbed: list[Points] = field(default_factory=list)

    def __call__(self, points: torch.Tensor) -> torch.Tensor:
        self.scored.append(points[0].numpy())
        return self.score(points)

    def slope(self, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.climbed.append(points[0].numpy())
        return self.score.slope(points)


@dataclass(frozen=True)
class Scene:
    """A learned policy over arms in a plane, with one request's score."""

    policy: Policy
    score: Score
    seeds: NDArray[np.uint64]

    def watch(self, search: Search) -> tuple[Watched, Points]:
        """Give where a search asked, and the arm that it took."""
        watched = Watched(self.score)
        score = replace(self.score, function=watched)
        choice = search.best(score, self.policy.arms, count=1, seeds=self.seeds)
        return watched, choice.points[0, 0].numpy()


def learned_scene(*, seed: int) -> Scene:
    """Teach a bandit about 1,500 arms of two features, whose rewards have several hills."""
    rng = np.random.default_rng(seed)
    arms = rng.uniform(-1, 1, size=(1_900, 2))
    arms = arms[np.hypot(*arms.T) < 1]
    contexts = rng.normal(size=(3_000, 2))
    chosen = rng.integers(0, len(arms), len(contexts))
    rewards = hills(contexts, arms[chosen])
    bandit = Bandit(arms=arms, context=2, reward="real", posterior="last-layer", seed=seed)
    bandit.update(contexts=contexts, arms=chosen, rewards=rewards)
    seeds = decision_seeds(seed, 0, 1)
    inputs = Inputs(dense=np.array([[0.6, -0.4]], dtype=np.float32))
    return Scene(bandit.policy, bandit.policy.score(inputs, seeds=seeds), seeds)


def hills(contexts: Points, arms: Points) -> Points:
    x, y = arms[:, 0], arms[:, 1]
    return np.asarray(np.cos(5 * x - contexts[:, 0]) + np.cos(5 * y + contexts[:, 1]) + 0.4 * x)


def draw_landscape(picture: Picture, scene: Scene) -> Frame:
    """Draw the score over the plane as hills, and every arm as a dot."""
    arms = scene.policy.arms
    low, high = arms.low.numpy(), arms.high.numpy()
    frame = Frame(low, high, 12, 12, picture.width - 24, picture.height - 68)
    xs, ys = (np.linspace(low[axis], high[axis], 90) for axis in (0, 1))
    grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(1, -1, 2).astype(np.float32)
    heights = scene.score(torch.from_numpy(grid))[0].numpy().reshape(len(ys), len(xs))
    hills: Any = contourpy.contour_generator(xs, ys, heights, fill_type="OuterOffset")
    top = float(heights.max())
    for level in np.linspace(heights.min(), top, 12)[1:-1]:
        rings = [
            outline[first:last]
            for outline, places in zip(*hills.filled(float(level), top + 1), strict=True)
            for first, last in pairwise(places)
        ]
        picture.path("".join(line_of(frame(ring)) + "Z" for ring in rings), "hill", width=0)
    picture.dots(frame(arms.all().points[0].numpy()), "dot", width=2.5)
    picture.path(frame.edge(), "line", width=1)
    return frame


def draw_ascent(scene: Scene) -> None:
    """Draw FastBandit: climbs from many starts, and the arms around their ends."""
    picture = Picture(700, 520)
    frame = draw_landscape(picture, scene)
    watched, taken = scene.watch(GradientAscent(starts=8, step_size=0.12, hops=1, far=0))
    paths = frame(np.stack(watched.climbed, axis=1))  # (starts, steps, 2)
    picture.dots(frame(watched.scored[0]), "three", width=4)
    for way in paths:
        picture.path(line_of(way), "two")
    picture.dots(paths[:, 0], "two", width=8)
    picture.ring(frame(taken), "ink")
    draw_legend(
        picture,
        [
            ("dot", 4, "an arm"),
            ("two", 8, "a start and its climb"),
            ("three", 5, "arms looked up and scored"),
            ("ink", 0, "taken"),
        ],
    )
    picture.save("ascent", title="Gradient ascent over the score, then real arms")


def draw_generator(scene: Scene) -> None:
    """Draw GANBandit: proposals, a short climb, the cells around, and the walk."""
    picture = Picture(700, 520)
    frame = draw_landscape(picture, scene)
    search = scene.policy.search
    assert isinstance(search, GeneratorSearch)
    watched, taken = scene.watch(replace(search, hops=2, beam=2, partitions=1, far=0, steps=2))
    heads, partitions, *hops = watched.scored
    picture.dots(frame(partitions), "three", width=4)
    for hop in hops:
        picture.dots(frame(hop), "one", width=4)
    for way in frame(np.stack([*watched.climbed[1:]], axis=1)):
        picture.path(line_of(way), "two", width=2)
    picture.dots(frame(heads), "two", width=8)
    picture.ring(frame(taken), "ink")
    draw_legend(
        picture,
        [
            ("dot", 4, "an arm"),
            ("two", 8, "proposed; the best two climb"),
            ("three", 5, "arms of the nearest cells"),
            ("one", 5, "neighbours walked to"),
            ("ink", 0, "taken"),
        ],
    )
    picture.save("generator", title="What the generator proposes, and the walk to an arm")


def draw_legend(picture: Picture, rows: Sequence[tuple[str, float, str]]) -> None:
    x, y = 20.0, picture.height - 24.0
    for kind, width, said in rows:
        mark = np.array([x, y - 4])
        if width:
            picture.dots(mark[None], kind, width=width)
        else:
            picture.ring(mark, kind, radius=6)
        picture.text(x + 12, y, said)
        x += 34 + 6.1 * len(said)


# -- draws and bounds


LINE = np.linspace(-1, 1, 161)


def learned_curve(explore: str) -> tuple[Policy, Points, Points]:
    """Teach a bandit of arms on a line a few rewards, none from the middle."""
    rng = np.random.default_rng(1)
    chosen = np.concatenate([rng.integers(0, 60, 14), rng.integers(135, 161, 4)])
    rewards = np.cos(5 * np.abs(LINE[chosen]) - 3) + 0.3 * rng.normal(size=len(chosen))
    waves = np.outer(LINE, np.arange(1, 4))
    bandit = Bandit(
        arms=np.concatenate([np.sin(waves), np.cos(waves)], axis=1),
        context=1,
        reward="real",
        exploration=ThompsonSampling(3.0) if explore == "ts" else UpperConfidence(2.0),
        posterior="last-layer" if explore == "ts" else "gradient",
        search="exhaustive",
    )
    bandit.update(contexts=np.ones((len(chosen), 1)), arms=chosen, rewards=rewards)
    return bandit.policy, LINE[chosen], rewards


def curves_of(policy: Policy, count: int, *, explores: bool) -> Points:
    """Give the scores of all arms for so many requests, in units of reward."""
    if not explores:
        policy = replace(policy, exploration=policy.exploration.quiet())
    inputs = Inputs(dense=np.ones((count, 1), dtype=np.float32))
    with torch.no_grad():
        scores = policy.score(inputs, seeds=decision_seeds(5, 0, count))(policy.arms.all().points)
    return np.asarray(policy.model.in_rewards(scores).numpy())


def draw_exploring() -> None:
    """Draw posterior draws beside an upper bound, from the same rewards."""
    picture = Picture(700, 330)
    panels = (
        ("ts", 5, "Thompson sampling: a curve for each request", 12),
        ("ucb", 1, "UCB: one bound above the mean", 362),
    )
    for explore, count, said, left in panels:
        policy, arms, rewards = learned_curve(explore)
        low, high = np.array([-1.0, -2.5]), np.array([1.0, 2.5])
        frame = Frame(low, high, left, 34, 326, 240)
        (mean,) = curves_of(policy, 1, explores=False)
        for curve in curves_of(policy, count, explores=True):
            picture.path(line_of(frame(np.stack([LINE, curve], axis=1))), "one")
            top = np.argmax(curve)
            picture.ring(frame(np.array([LINE[top], curve[top]])), "two", radius=5)
        picture.path(line_of(frame(np.stack([LINE, mean], axis=1))), "ink", dashed=True)
        picture.dots(frame(np.stack([arms, rewards], axis=1)), "three", width=4)
        picture.path(frame.edge(), "line", width=1)
        picture.text(left, 24, said, kind="head")
    draw_legend(
        picture,
        [
            ("three", 5, "a reward"),
            ("ink", 4, "mean (dashed)"),
            ("one", 5, "score of a request"),
            ("two", 0, "the arm it takes"),
        ],
    )
    picture.save("exploring", title="Thompson sampling and upper confidence on the same rewards")


# -- arm effects


def shrinking(width: float) -> tuple[Points, Points]:
    """Give constants of arms that differ so much, and their fitted width, as rewards come."""
    rng = np.random.default_rng(4)
    arms, most = 30, int(ROUNDS[-1])
    truth = rng.normal(0.0, width, size=arms)
    rewards = truth + rng.normal(size=(most, arms))  # features say 0 of all of them
    means, widths = [], []
    for count in ROUNDS.tolist():
        rows = np.tile(np.arange(arms), count)
        told = (rewards[:count].ravel(), np.zeros(len(rows)), np.ones(len(rows)))
        nobody = np.zeros(0, dtype=np.int64)
        fitted = ArmConstants.fit(rows, *told, arms=arms, tried=nobody, noise=1.0)
        means.append(fitted.posterior()[0])
        widths.append(fitted.width)
    return np.stack(means), np.array(widths)


def draw_effects() -> None:
    """Draw arms' constants where arms differ, and where their features tell all."""
    picture = Picture(700, 330)
    panels = ((0.7, "Arms differ from what features say", 12), (0.0, "Features tell all", 362))
    x = np.log2(ROUNDS)
    for width, said, left in panels:
        means, widths = shrinking(width)
        frame = Frame(np.array([0.0, -1.8]), np.array([x[-1], 1.8]), left, 34, 326, 240)
        for constants in means.T:
            picture.path(line_of(frame(np.stack([x, constants], axis=1))), "one", width=1)
        for sign in (1, -1):
            edge = frame(np.stack([x, sign * widths], axis=1))
            picture.path(line_of(edge), "two", dashed=True)
        picture.path(frame.edge(), "line", width=1)
        picture.text(left, 24, said, kind="head")
        picture.text(left, 290, "1 reward an arm", kind="soft")
        picture.text(left + 326, 290, f"{ROUNDS[-1]}", kind="soft", at="end")
    draw_legend(
        picture,
        [("one", 5, "constant of an arm"), ("two", 4, "fitted width (dashed)")],
    )
    picture.save("effects", title="Constants of arms, as rewards come")


# -- diagrams


def draw_parts() -> None:
    """Draw how the four parts make a choice."""
    picture = Picture(700, 245)
    picture.box(12, 20, 190, ["Reward model", "dropout, gradients,", "last layer, …"])
    picture.box(255, 20, 190, ["Exploration", "ThompsonSampling,", "UpperConfidence, Greedy"])
    picture.box(255, 160, 190, ["Arm space", "a catalogue of arms,", "or a Box"])
    picture.box(498, 90, 190, ["Search", "generator, ascent,", "exhaustive"])
    picture.box(12, 160, 190, ["Context, seed", "what is known now,", "and this request's draw"])
    picture.arrow((202, 52), (255, 52))
    picture.arrow((107, 160), (107, 85))
    picture.arrow((445, 52), (593, 52), (593, 90), kind="two")
    picture.text(520, 44, "score of any arm", at="middle")
    picture.arrow((445, 193), (540, 193), (540, 155))
    picture.text(490, 186, "real arms", at="middle")
    picture.arrow((668, 155), (668, 232))
    picture.text(660, 225, "arms, best first", at="end")
    picture.save("parts", title="Model, exploration, search and arms")


def draw_service() -> None:
    """Draw what happens to a request, and how a version comes to serve."""
    picture = Picture(700, 300)
    picture.box(12, 30, 120, ["Caller", "context, reward"])
    picture.box(210, 30, 190, ["Decider", "a version in memory,", "one assignment to swap"])
    picture.box(478, 30, 210, ["Event log", "SQLite, synced before", "anything is answered"])
    picture.box(478, 190, 210, ["Learner", "its own process: joins,", "trains, checks q and loss"])
    picture.box(210, 190, 190, ["Snapshots", "hashed, renamed,", "never half-written"])
    picture.arrow((132, 46), (210, 46))
    picture.text(171, 38, "select", at="middle")
    picture.arrow((210, 72), (132, 72))
    picture.text(171, 92, "arms", at="middle")
    picture.arrow((400, 46), (478, 46))
    picture.text(439, 38, "append", at="middle")
    picture.arrow((478, 72), (400, 72), kind="two")
    picture.text(439, 92, "synced", at="middle")
    picture.arrow((72, 78), (72, 130), (583, 130), (583, 95))
    picture.text(290, 123, "rewards, when they come")
    picture.arrow((640, 95), (640, 190))
    picture.text(632, 150, "reads", at="end")
    picture.arrow((478, 222), (400, 222))
    picture.text(439, 214, "publish", at="middle")
    picture.arrow((262, 190), (262, 95), kind="two")
    picture.text(254, 168, "hot swap", at="end")
    picture.save(
        "service", title="From a request to the log, to a new version, to the next request"
    )


def main() -> None:
    """Draw all pictures, some of which train a bandit for seconds."""
    FOLDER.mkdir(exist_ok=True)
    scene = learned_scene(seed=3)
    draw_ascent(scene)
    draw_generator(scene)
    draw_exploring()
    draw_effects()
    draw_parts()
    draw_service()


if __name__ == "__main__":
    main()
