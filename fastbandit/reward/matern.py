"""The Matérn 5/2 kernel over contexts and points of a box, fitted by maximum likelihood.

Contexts share one length; each side of the box has its own. The likelihood is that of a Gaussian
process with this kernel, a constant and noise (Rasmussen and Williams, "Gaussian processes for
machine learning", 2006, chapter 5), times a broad prior that holds lengths while rewards are few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

_MOST = 256  # observations that lengths are fitted to
_STEPS = 40
_STARTS = (0.1, 0.3, 1.0)  # lengths, in sides of the box
_USUAL_NOISE = 0.1  # of the variance of rewards
_DEGREES = 5  # of freedom, of the frequencies of Matérn 5/2


@dataclass(frozen=True, eq=False)
class Kernel:
    """A variance, the noise's variance, the length of contexts, and one for each side of the box.

    Variances are in units of the variance of rewards, lengths of sides in sides.
    """

    variance: float
    noise: float
    context_length: float
    lengths: Float[Tensor, " D"]

    def numbers(self) -> Float[Tensor, " P"]:
        """Return the logarithms of all of it, which a fit moves."""
        scalars = self.lengths.new_tensor([self.variance, self.noise, self.context_length])
        return torch.cat([scalars, self.lengths]).log()

    @staticmethod
    def of(numbers: Float[Tensor, " P"]) -> Kernel:
        variance, noise, length = numbers[:3].exp().tolist()
        return Kernel(variance, noise, length, numbers[3:].exp())


@dataclass(frozen=True, eq=False)
class Seen:
    """Features of contexts (n, E), points of the unit cube, standardised rewards, weights."""

    contexts: Float[Tensor, "n E"]
    points: Float[Tensor, "n D"]
    rewards: Float[Tensor, " n"]
    weights: Float[Tensor, " n"]

    def some(self) -> Seen:
        """Return what lengths are fitted to: the first, when all was tried, and others evenly."""
        count, half = len(self.rewards), _MOST // 2
        if count <= _MOST:
            return self
        rows = torch.cat([torch.arange(half), torch.linspace(half, count - 1, half).long()])
        return Seen(self.contexts[rows], self.points[rows], self.rewards[rows], self.weights[rows])


def frequencies(count: int, dim: int, *, rng: Generator) -> Float[Tensor, "F I"]:
    """Draw frequencies, in radians a length, whose features have this kernel on average."""
    directions = torch.randn(count, dim, generator=rng, dtype=torch.float64)
    squares = torch.randn(count, _DEGREES, generator=rng, dtype=torch.float64).square().mean(1)
    return directions / squares.sqrt()[:, None]  # Student's t


def fit_kernel(seen: Seen, *, before: Kernel | None) -> Kernel:
    """Find the likeliest kernel, from several first kernels or from one and an earlier kernel."""
    some, columns = seen.some(), seen.contexts.shape[1]
    dim = seen.points.shape[1]
    first_kernels = [
        Kernel(1.0, _USUAL_NOISE, _usual_context(columns), some.points.new_full((dim,), length))
        for length in _STARTS
    ]
    starts = first_kernels if before is None else [before, first_kernels[1]]
    fits = [_fit_from(some, start) for start in starts]
    return Kernel.of(min(fits, key=lambda fit: fit[1])[0])


def _fit_from(seen: Seen, start: Kernel) -> tuple[Tensor, float]:
    """Return the best numbers that L-BFGS comes by, and how unlikely they are."""
    numbers = start.numbers().requires_grad_()
    best = (start.numbers(), math.inf)
    optimiser = torch.optim.LBFGS([numbers], max_iter=_STEPS, line_search_fn="strong_wolfe")

    def unlikely() -> float:
        nonlocal best
        with torch.enable_grad():
            optimiser.zero_grad()
            loss = _unlikely(seen, numbers)
            loss.backward()
        value = float(loss.detach())
        if value < best[1]:
            best = (_bounded(numbers.detach()), value)
        return value

    optimiser.step(unlikely)
    return best


def _bounded(numbers: Float[Tensor, " P"]) -> Float[Tensor, " P"]:
    """Return logarithms within sane limits."""
    low, high = torch.full_like(numbers, math.log(0.01)), torch.full_like(numbers, math.log(100.0))
    low[1] = math.log(1e-4)
    return torch.minimum(torch.maximum(numbers, low), high)


def _unlikely(seen: Seen, numbers: Float[Tensor, " P"]) -> Float[Tensor, ""]:
    """Return minus the logarithm of likelihood times prior."""
    variance, noise, length, *_ = sane = _bounded(numbers).exp()
    inputs = torch.cat([seen.contexts / length, seen.points / sane[3:]], dim=1)
    covariance = 1.0 + variance * _correlation(inputs) + torch.diag(noise / seen.weights)
    root = torch.linalg.cholesky(covariance)
    half = torch.linalg.solve_triangular(root, seen.rewards[:, None], upper=False)
    misfit = 0.5 * half.square().sum() + root.diagonal().log().sum()
    return misfit + _improbable(numbers, columns=seen.contexts.shape[1])


def _correlation(inputs: Float[Tensor, "n I"]) -> Float[Tensor, "n n"]:
    norms = inputs.square().sum(1)
    squares = (norms[:, None] + norms - 2.0 * inputs @ inputs.T).clamp_min(0.0)
    away = torch.sqrt(5.0 * squares + 1e-12)
    return (1.0 + away + away.square() / 3.0) * torch.exp(-away)


def _improbable(numbers: Float[Tensor, " P"], *, columns: int) -> Float[Tensor, ""]:
    """Return how far logarithms lie from the usual, in squared deviations of their priors."""
    variance, noise, length, sides = numbers[0], numbers[1], numbers[2], numbers[3:]
    usual_side = math.log(0.3 * math.sqrt(len(sides)))  # points of more sides lie further apart
    lengths = (sides - usual_side).square().sum()
    lengths = lengths + (length - math.log(_usual_context(columns))).square()
    sizes = variance.square() / 4 + (noise - math.log(_USUAL_NOISE)).square() / 8
    return 0.5 * (lengths + sizes)


def _usual_context(columns: int) -> float:
    """Return about the distance of two contexts whose features have deviation 1."""
    return max(1.0, math.sqrt(columns))
