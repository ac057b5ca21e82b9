"""What decisions are timed side by side: ours, other libraries', and plain sweeps over all arms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import SettingError
from fastbandit.noise.philox import Stream, decision_seeds, uniforms
from lab.experiments.environment import FAR

if TYPE_CHECKING:
    from fastbandit.bandit import Bandit

Floats = NDArray[np.float32]
Decide = Callable[[int], int]
"""Makes the decision of this number, and gives the row of the arm."""

LEARNED, ASKED = 500, 64
_SHOWN = 10  # arms in one example that Vowpal Wabbit learns from
_BLOCK = 4096  # arms whose hidden layer stays in the cache
_HNSW_LINKS, _HNSW_BREADTH = 32, 64


@dataclass(frozen=True)
class Task:
    """What every peer is given: arms, what came of some of them, and contexts to decide for."""

    arms: Floats
    contexts: Floats
    rows: NDArray[np.int64]
    rewards: NDArray[np.float64]
    asked: Floats
    seed: int = 0

    @property
    def dim(self) -> int:
        return int(self.arms.shape[1])


def task_of(arms: int, dim: int, *, seed: int = 0) -> Task:
    """Make an environment of `arms` arms, in which a few hundred random ones were tried."""
    environment = Synthetic("h3", dim, arms, seed=seed)
    root = int(decision_seeds(seed, FAR + 4, 1)[0])
    draws = uniforms(decision_seeds(root, 0, LEARNED), 1, Stream.UNIFORM_CHOICE)[:, 0]
    rows = (draws.astype(np.float64) * arms).astype(np.int64)
    return Task(
        arms=environment.arms,
        contexts=environment.contexts(0, LEARNED),
        rows=rows,
        rewards=environment.observed(0, rows),
        asked=environment.contexts(LEARNED, ASKED),
        seed=seed,
    )


# -- ours, and the same reward network without a search


def frozen_bandit(task: Task) -> Decide:
    """Train a bandit with default settings and freeze it."""
    frozen = trained(task).freeze()
    return lambda number: int(frozen.select_one(task.asked[number % ASKED], seed=number).row)


def torch_sweep(task: Task) -> Decide:
    """Score all arms in torch, as a bandit with the exhaustive search does."""
    bandit = trained(task, search="exhaustive")

    def decide(number: int) -> int:
        context = task.asked[number % ASKED, None]
        seeds = np.array([number], dtype=np.uint64)
        return int(bandit.select(context, seeds=seeds).rows[0, 0])

    return decide


@dataclass(frozen=True)
class Sweep:
    """The reward network of one request as a function of the arm alone."""

    first: Floats
    bias: Floats
    last: Floats
    wide: Floats
    leak: np.float32

    def plainly(self, vectors: Floats) -> Floats:
        """Score arms as the formula reads, but for a constant that they share."""
        before = vectors @ self.first.T + self.bias  # (N, H)
        hidden = np.where(before > 0, before, self.leak * before)
        return hidden @ self.last + vectors @ self.wide

    def in_blocks(self, vectors: Floats) -> Floats:
        """Score arms in place, so few at a time that nothing leaves the cache."""
        scores = np.empty(len(vectors), dtype=np.float32)
        for first in range(0, len(vectors), _BLOCK):
            part = vectors[first : first + _BLOCK]
            hidden = part @ self.first.T
            hidden += self.bias
            np.maximum(hidden, self.leak * hidden, out=hidden)
            scores[first : first + _BLOCK] = hidden @ self.last + part @ self.wide
        return scores


@dataclass(frozen=True)
class Forward:
    """The reward network of one request as it is written: every layer, for every arm."""

    context: Floats
    masks: tuple[Floats, Floats]
    first: Floats
    bias: Floats
    last: Floats
    wide: Floats
    leak: np.float32

    def best(self, arms: Floats) -> int:
        """Find the best of all embedded arms: join, mask, two layers, and the wide path."""
        context = np.broadcast_to(self.context, arms.shape)
        inputs = np.concatenate([context, arms, self.context * arms], axis=1)  # (N, 3E)
        before = (inputs * self.masks[0]) @ self.first.T + self.bias
        hidden = np.where(before > 0, before, self.leak * before) * self.masks[1]
        return int((hidden @ self.last + inputs @ self.wide).argmax())


def forwards_of(bandit: Bandit, contexts: Floats) -> tuple[Floats, list[Forward]]:
    """Return the embedded arms, and the network with the draw of each context's number."""
    import torch

    from fastbandit.arms.catalogue import Catalogue
    from fastbandit.noise.philox import Stream, uniforms
    from fastbandit.reward.dropout_model import DropoutReward
    from fastbandit.types import Inputs

    model, arms = bandit.policy.model, bandit.policy.arms
    assert isinstance(model, DropoutReward)
    assert isinstance(arms, Catalogue)
    network, exploration = model.network, bandit.policy.exploration
    first, last = network.layers
    assert network.wide is not None
    seeds = np.arange(len(contexts), dtype=np.uint64)
    with torch.no_grad():
        embedded = model.embed_contexts(Inputs(dense=contexts)).numpy()
        numbers = torch.from_numpy(uniforms(seeds, model.noise_size, Stream.POSTERIOR))
        masks = [
            part.numpy() for part in network.masks(numbers, getattr(exploration, "scale", 0.0))
        ]
        placed = model.embed_arms(arms.features).numpy()
    whole = Forward(
        context=embedded[0],
        masks=(masks[0][0], masks[1][0]),
        first=first.weight.detach().numpy(),
        bias=first.bias.detach().numpy(),
        last=last.weight[0].detach().numpy(),
        wide=network.wide.weight[0].detach().numpy(),
        leak=np.float32(network.leak),
    )
    drawn = zip(embedded, *masks, strict=True)
    return placed, [replace(whole, context=one, masks=(two, three)) for one, two, three in drawn]


def numpy_network(task: Task) -> Decide:
    """Score all arms in NumPy through the network as it is written, layer by layer."""
    arms, forwards = forwards_of(trained(task, search="exhaustive"), task.asked)
    return lambda number: forwards[number % ASKED].best(arms)


def numpy_plain(task: Task) -> Decide:
    """Score all arms in NumPy at once; folding the network is not counted."""
    vectors, sweeps = sweeps_of(trained(task, search="exhaustive"), task.asked)
    return lambda number: int(sweeps[number % ASKED].plainly(vectors).argmax())


def numpy_blocks(task: Task) -> Decide:
    """Score all arms in NumPy as fast as it goes; folding the network is not counted."""
    vectors, sweeps = sweeps_of(trained(task, search="exhaustive"), task.asked)
    return lambda number: int(sweeps[number % ASKED].in_blocks(vectors).argmax())


def sweeps_of(bandit: Bandit, contexts: Floats) -> tuple[Floats, list[Sweep]]:
    """Return the arms' vectors, and the folded network of each context, seeded by its number."""
    import torch

    from fastbandit.types import Inputs

    policy = bandit.policy
    seeds = np.arange(len(contexts), dtype=np.uint64)
    with torch.no_grad():
        folded: Any = policy.score(Inputs(dense=contexts), seeds=seeds).function
    if folded.deeper:
        raise SettingError("A sweep needs a network of one hidden layer: got a deeper one.")
    fields = (folded.first, folded.first_bias, folded.last, folded.wide)
    first, bias, last, wide = (np.ascontiguousarray(field.numpy()) for field in fields)
    leak = np.float32(folded.leak)
    parts = zip(first, bias, last, wide, strict=True)
    return policy.arms.all().points[0].numpy(), [Sweep(*part, leak) for part in parts]


def trained(task: Task, *, search: str = "generator") -> Bandit:
    """Train a bandit on what is known; its reward network is the same whatever the search."""
    from fastbandit.bandit import Bandit

    bandit = Bandit(
        arms=task.arms,
        context=task.dim,
        reward="real",
        search=search,
        posterior="neural",
        seed=task.seed,
        progress=False,
    )
    bandit.update(contexts=task.contexts, arms=task.rows, rewards=task.rewards)
    return bandit


# -- other libraries


def squarecb(task: Task) -> Decide:
    """Let Vowpal Wabbit give the probability of every arm, and draw one."""
    return _vowpal_wabbit(task, "--cb_explore_adf --squarecb")


def squarecb_large(task: Task) -> Decide:
    """Let Vowpal Wabbit give a few arms a probability, found by a factorisation, and draw one."""
    return _vowpal_wabbit(task, "--cb_explore_adf --squarecb --large_action_space")


def _vowpal_wabbit(task: Task, options: str) -> Decide:
    workspace = import_module("vowpalwabbit").Workspace(
        f"{options} --interactions ua --quiet --random_seed {task.seed}"
    )
    lines = [f"|a {_worded(arm)}" for arm in task.arms]
    for example in vw_examples(task, lines):
        workspace.learn(example)
    heads = [workspace.parse([f"shared |u {_worded(context)}"])[0] for context in task.asked]
    examples = [heads[0], *workspace.parse(lines)]
    draws = uniforms(decision_seeds(task.seed, 0, ASKED), 1, Stream.UNIFORM_CHOICE)[:, 0]

    def decide(number: int) -> int:
        examples[0] = heads[number % ASKED]
        return drawn(np.array(workspace.predict(examples)), float(draws[number % ASKED]))

    return decide


def vw_examples(task: Task, lines: list[str]) -> list[list[str]]:
    """Format what is known: the arm that was tried first, among others it was drawn from."""
    examples = []
    for index, row in enumerate(task.rows):
        head = f"shared |u {_worded(task.contexts[index])}"
        tried = f"0:{-task.rewards[index]:.6g}:{1 / _SHOWN} {lines[row]}"
        others = [lines[(row + step) % len(lines)] for step in range(1, _SHOWN)]
        examples.append([head, tried, *others])
    return examples


def drawn(probabilities: NDArray[np.float64], uniform: float) -> int:
    """Draw a row by its probability with a number between 0 and 1."""
    sums = probabilities.cumsum()
    return min(int(sums.searchsorted(uniform * sums[-1], side="right")), len(probabilities) - 1)


def _worded(features: Floats) -> str:
    return " ".join(f"{index}:{number:.6g}" for index, number in enumerate(features))


def mabwiser_linucb(task: Task) -> Decide:
    """Let MABWiser keep a linear model for each arm; it takes no features of arms."""
    mab = import_module("mabwiser.mab")
    model = mab.MAB(
        arms=list(range(len(task.arms))),
        learning_policy=mab.LearningPolicy.LinUCB(alpha=1.0),
        seed=task.seed,
    )
    model.fit(decisions=task.rows, rewards=task.rewards, contexts=task.contexts)
    return lambda number: int(model.predict(task.asked[number % ASKED, None]))


def contextualbandits_linucb(task: Task) -> Decide:
    """Let contextualbandits keep a linear model for each arm; it takes no features of arms."""
    online = import_module("contextualbandits.online")
    model = online.LinUCB(nchoices=len(task.arms), random_state=task.seed + 1, njobs=1)
    model.fit(task.contexts, task.rows, task.rewards)
    return lambda number: int(model.predict(task.asked[number % ASKED, None])[0])


def two_towers(task: Task) -> Decide:
    """Look up the largest dot product with a linear map of the context, by faiss's HNSW."""
    import faiss

    index = faiss.IndexHNSWFlat(task.dim, _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
    index.add(task.arms)
    index.hnsw.efSearch = _HNSW_BREADTH
    tower = tower_of(task)

    def decide(number: int) -> int:
        query = task.asked[number % ASKED, None] @ tower
        return int(index.search(query, 1)[1][0, 0])

    return decide


def tower_of(task: Task, *, penalty: float = 1.0) -> Floats:
    """Fit a map M by ridge regression, so that x M a is the reward of context x and arm a."""
    x, a = task.contexts.astype(np.float64), task.arms[task.rows].astype(np.float64)
    likeness = (x @ x.T) * (a @ a.T)
    weights = np.linalg.solve(likeness + penalty * np.eye(len(x)), task.rewards)
    return ((x * weights[:, None]).T @ a).astype(np.float32)


# -- all of them


@dataclass(frozen=True)
class Peer:
    """Something that decides: how to make it, and what must be installed for that."""

    name: str
    title: str
    make: Callable[[Task], Decide]
    needs: str
    package: str
    extra: str = "peers"
    note: str = ""


OURS = "fastbandit"
_PER_ARM = "a model for each arm, no arm features"
PEERS = (
    Peer(OURS, "fastbandit, frozen", frozen_bandit, "torch", "fastbandit", "train"),
    Peer(
        "vw",
        "Vowpal Wabbit SquareCB",
        squarecb,
        "vowpalwabbit",
        "vowpalwabbit",
        note="examples parsed before",
    ),
    Peer(
        "vw-large",
        "Vowpal Wabbit, large_action_space",
        squarecb_large,
        "vowpalwabbit",
        "vowpalwabbit",
        note="examples parsed before",
    ),
    Peer("mabwiser", "MABWiser LinUCB", mabwiser_linucb, "mabwiser", "mabwiser", note=_PER_ARM),
    Peer(
        "contextualbandits",
        "contextualbandits LinUCB",
        contextualbandits_linucb,
        "contextualbandits",
        "contextualbandits",
        note=_PER_ARM,
    ),
    Peer(
        "two-tower",
        "two towers + faiss HNSW",
        two_towers,
        "faiss",
        "faiss-cpu",
        note="dot products only, no exploration",
    ),
    Peer(
        "numpy-network",
        "exhaustive NumPy, layer by layer",
        numpy_network,
        "torch",
        "numpy",
        "train",
        note="our network as it is written",
    ),
    Peer(
        "numpy",
        "exhaustive NumPy, folded",
        numpy_plain,
        "torch",
        "numpy",
        "train",
        note="our network, the sweep alone",
    ),
    Peer(
        "numpy-blocks",
        "exhaustive NumPy, tuned",
        numpy_blocks,
        "torch",
        "numpy",
        "train",
        note="our network, the sweep alone, in blocks",
    ),
    Peer("torch", "exhaustive torch", torch_sweep, "torch", "torch", "train", note="our network"),
)
