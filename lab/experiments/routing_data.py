"""Synthetic prompts and language models: quality, price and latency of each answer, with drift.

Nothing of it is a real model's: names, prices and skills are drawn from a seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

TOPICS = {
    "code": "function bug python class compile loop test stack api refactor regex commit",
    "maths": "equation integral matrix theorem sum probability vector limit graph prime root proof",
    "writing": "story essay tone paragraph poem title character draft headline plot rhyme style",
    "translation": "translate sentence phrase idiom german french letter subtitle glossary menu",
    "extraction": "invoice table dates names json fields totals csv receipt address columns report",
    "chat": "hello weekend recipe film travel advice birthday joke dog weather music garden",
    "law": "contract clause liability court statute tenant licence appeal breach tort deed notary",
    "medicine": "symptom dose diagnosis trial patient therapy blood fever nerve allergy scan rash",
}
HARD = "prove rigorous derive optimise exhaustive subtle concurrent nested formal tricky"
EASY = "short simple quick list rename summary brief plain copy example"
FILLER = "please the for with and this my about need can you give from into"
LANGUAGES = ("en", "de", "fr", "ja")

PRICES = np.array([0.1, 0.2, 0.4, 0.8, 2.0, 4.0, 10.0, 1.0])
"""Of 1,000 tokens, the last one's for the model that comes later."""
NAMES = ("pico", "nano", "small", "coder", "medium", "polyglot", "large", "newcomer")
_SKILLS = np.array([-0.6, -0.2, 0.2, 0.3, 0.9, 1.0, 1.7, 1.3])
_STRENGTHS = {"coder": ("code", "maths"), "polyglot": ("translation", "law"), "nano": ("chat",)}
_ANSWER = 300.0  # tokens of an answer, on average
_NOISE = 0.12  # of one observed quality


@dataclass(frozen=True, eq=False)
class Traffic:
    """Requests in their order, and what each model would make of each (requests × models).

    `qualities` are true means, `observed` what feedback would say. `expected` costs are known
    beforehand, `costs` when the answer is there. Feedback on a request comes at the request
    numbered `told`, -1 for never. A model is there from the request `joins` on.
    """

    prompts: dict[str, list[object]]
    qualities: Floats
    observed: Floats
    expected: Floats
    costs: Floats
    told: Rows
    joins: Rows

    def __len__(self) -> int:
        return len(self.costs)

    def live(self, request: int) -> NDArray[np.bool_]:
        """Return which models are there at a request."""
        return np.asarray(self.joins <= request)

    def table(self, first: int, last: int) -> dict[str, list[object]]:
        """Return the contexts of some requests, by name."""
        return {name: values[first:last] for name, values in self.prompts.items()}

    def rows(self, requests: Rows) -> dict[str, list[object]]:
        """Return the contexts of requests by their numbers."""
        return {name: [column[n] for n in requests] for name, column in self.prompts.items()}


def latencies() -> Floats:
    """Return the seconds of an answer: dearer models are slower."""
    return np.round(0.3 + 0.6 * np.sqrt(PRICES), 2)


def make_traffic(requests: int, *, seed: int) -> Traffic:
    """Return synthetic traffic, always the same from the same seed."""
    rng = np.random.default_rng(seed)
    names = tuple(TOPICS)
    topics = rng.choice(len(names), size=requests, p=_shares(rng, len(names)))
    languages = rng.choice(len(LANGUAGES), size=requests, p=(0.6, 0.2, 0.12, 0.08))
    difficulty = rng.beta(2.0, 2.0, size=requests)
    tokens = np.round(rng.lognormal(5.3, 0.7, size=requests)).clip(10, 4_000)
    prompts: dict[str, list[object]] = {
        "prompt": [_prompt(names[t], d, rng) for t, d in zip(topics, difficulty, strict=True)],
        "tokens": tokens.tolist(),
        "language": [LANGUAGES[one] for one in languages],
    }
    qualities = _qualities(topics, languages, difficulty, rng)
    observed = (qualities + _NOISE * rng.normal(size=qualities.shape)).clip(0, 1)
    answers = _ANSWER * rng.lognormal(-0.08, 0.4, size=requests)
    joins = np.where(np.array(NAMES) == "newcomer", requests // 2, 0)
    return Traffic(
        prompts,
        qualities,
        observed,
        expected=np.outer(tokens + _ANSWER, PRICES) / 1_000,
        costs=np.outer(tokens + answers, PRICES) / 1_000,
        told=_told(requests, rng),
        joins=joins.astype(np.int64),
    )


def _shares(rng: np.random.Generator, count: int) -> Floats:
    weights = rng.uniform(0.5, 1.5, size=count)
    return np.asarray(weights / weights.sum())


def _prompt(topic: str, difficulty: float, rng: np.random.Generator) -> str:
    """Return words of a topic, some that tell how hard it is, and some that tell nothing."""
    hints = [HARD if rng.random() < difficulty else EASY for _ in range(3)]
    words = [str(rng.choice(some.split())) for some in hints]
    words += [str(word) for word in rng.choice(TOPICS[topic].split(), size=3)]
    words += [str(word) for word in rng.choice(FILLER.split(), size=4)]
    rng.shuffle(words)
    return " ".join(words)


def _qualities(
    topics: Rows, languages: Rows, difficulty: Floats, rng: np.random.Generator
) -> Floats:
    """Return true qualities: skills, strengths, what is hard for whom, and how that drifts."""
    count, models = len(topics), len(NAMES)
    by_topic = 0.5 * rng.normal(size=(len(TOPICS), models))
    for model, strong in _STRENGTHS.items():
        for topic in strong:
            by_topic[list(TOPICS).index(topic), NAMES.index(model)] += 1.4
    by_language = np.zeros((len(LANGUAGES), models))
    by_language[1:] -= np.abs(rng.normal(0.5, 0.3, size=(len(LANGUAGES) - 1, models)))
    by_language[:, NAMES.index("polyglot")] = 0.3
    slopes = np.linspace(4.0, 1.0, models - 1)  # what is hard is harder for a cheap model
    slopes = np.append(slopes, 1.8)
    drift = np.cumsum(rng.normal(0.0, 0.6 / np.sqrt(count), size=(count, models)), axis=0)
    drift[int(0.35 * count) :, NAMES.index("medium")] -= 1.2  # its maker changed it unasked
    wanted = _SKILLS + by_topic[topics] + by_language[languages] + drift
    wanted -= np.outer(difficulty - 0.35, slopes)
    return np.asarray(1 / (1 + np.exp(-wanted)))


def _told(requests: int, rng: np.random.Generator) -> Rows:
    """Return when feedback comes: for a tenth, of which three in ten much later."""
    soon = rng.integers(1, 50, size=requests)
    late = rng.integers(200, 1_000, size=requests)
    delays = np.where(rng.random(requests) < 0.3, late, soon)
    told = np.arange(requests) + delays
    return np.where(rng.random(requests) < 0.1, told, -1)
