"""Dense, sparse, image and id inputs to embeddings, all initialised from an rng."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Image, Point, Sparse
from fastbandit.optim.layers import convolution, linear
from fastbandit.reward.context_features import CLIP, usual_range
from fastbandit.types import Features, Inputs

_RARE = 0.01  # so many of a column's numbers may be far from its others, and are cut
_ENOUGH = 10_000  # rows that tell what is usual
_MOST = float(np.finfo(np.float32).max)
_FOURIER_SCALES = (0.06, 0.12, 0.25, 0.5)  # of a side of the box, in one dimension


class Encoder(nn.Module, ABC):
    """Turns inputs into embeddings: one final class for each kind of features."""

    @abstractmethod
    def fit(self, inputs: Inputs) -> None:
        """Learn the scale of the raw numbers (and room for new ids), before any training."""

    @abstractmethod
    def forward(self, inputs: Inputs) -> Float[Tensor, "B E"]: ...

    def weight_penalty(self) -> Float[Tensor, ""]:
        """Return the squared weights that turn inputs into embeddings: a linear map, or a table."""
        map_or_table: Any = getattr(self, "linear", self)
        return map_or_table.weight.square().sum()

    def is_clipped(self, inputs: Inputs) -> NDArray[np.bool_]:
        """Return for each row whether a number of it is cut: (B,)."""
        return np.zeros(len(inputs), dtype=bool)


class Standardise(nn.Module):
    """Shifts and scales numbers to mean 0 and deviation 1, as first seen, and cuts far ones.

    Columns of zeros and ones are only shifted: scaled, a rare one would outweigh all else.
    Numbers of columns are cut to [`low`, `high`], which grow with what is usual; far ones move
    neither these nor mean and deviation. A single scale for all numbers (of images) cuts none.
    """

    shift: Tensor
    scale: Tensor
    low: Tensor
    high: Tensor
    is_fitted: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("shift", torch.zeros(shape))
        self.register_buffer("scale", torch.ones(shape))
        self.register_buffer("low", torch.full(shape, -_MOST))
        self.register_buffer("high", torch.full(shape, _MOST))
        self.register_buffer("is_fitted", torch.tensor(False))

    @property
    def cuts(self) -> bool:
        """Whether there are numbers that it would cut."""
        return bool((self.high < _MOST).any() or (self.low > -_MOST).any())

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if not self.cuts:
            del destination[f"{prefix}low"], destination[f"{prefix}high"]

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Cut nothing where what was saved does not say how."""
        for name, most in (("low", -_MOST), ("high", _MOST)):
            state.setdefault(f"{prefix}{name}", torch.full(self.shift.shape, most))
        super()._load_from_state_dict(state, prefix, *rest)

    def fit(self, numbers: Any) -> None:
        """Take mean and deviation once, later data is measured by the same rule; widen the cut."""
        if not self.shift.ndim:
            if not self.is_fitted:
                self._fit_scale(numbers)
            return
        low, high = _usual(numbers)
        if not self.is_fitted:
            is_far = bool(((numbers < low) | (numbers > high)).any())
            mean, std = self._fit_scale(np.clip(numbers, low, high) if is_far else numbers)
            low, high = np.minimum(low, mean - CLIP * std), np.maximum(high, mean + CLIP * std)
            self._cut(low, high)
        elif self.cuts:
            before = self.low.double().cpu().numpy(), self.high.double().cpu().numpy()
            self._cut(np.minimum(low, before[0]), np.maximum(high, before[1]))

    def _fit_scale(self, numbers: Any) -> tuple[Any, Any]:
        over = tuple(range(numbers.ndim - self.shift.ndim))
        mean = numbers.mean(axis=over, dtype=np.float64)
        std = numbers.std(axis=over, dtype=np.float64)
        std = np.where(std > 1e-6 * np.abs(mean), std, 1.0)  # constants stay as they are
        if self.shift.ndim:
            std = np.where(((numbers == 0) | (numbers == 1)).all(axis=over), 1.0, std)
        self.shift.copy_(torch.as_tensor(mean))
        self.scale.copy_(torch.as_tensor(std))
        self.is_fitted.fill_(True)
        return mean, std

    def _cut(self, low: Any, high: Any) -> None:
        self.low.copy_(torch.as_tensor(np.maximum(low, -_MOST)))
        self.high.copy_(torch.as_tensor(np.minimum(high, _MOST)))

    def forward(self, numbers: Tensor) -> Tensor:
        return (numbers.clamp(self.low, self.high) - self.shift) / self.scale


def _usual(numbers: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the usual range of each column, by some thousand rows, evenly spaced."""
    if not len(numbers):
        nothing = np.zeros(numbers.shape[1])
        return nothing, nothing
    some = np.linspace(0, len(numbers) - 1, min(len(numbers), _ENOUGH)).astype(np.int64)
    return usual_range(numbers[some].astype(np.float64), rare=_RARE)


class DenseEncoder(Encoder):
    """A linear map of standardised numbers."""

    def __init__(self, features: Dense, embedding: int, *, rng: Generator) -> None:
        super().__init__()
        self.standardise = Standardise((features.dim,))
        self.linear = linear(features.dim, embedding, rng=rng)

    def fit(self, inputs: Inputs) -> None:
        self.standardise.fit(inputs.dense)

    def forward(self, inputs: Inputs) -> Float[Tensor, "B E"]:
        assert inputs.dense is not None
        return self.encode(_tensor(inputs.dense, self.linear.weight))

    def is_clipped(self, inputs: Inputs) -> NDArray[np.bool_]:
        assert inputs.dense is not None
        low, high = self.standardise.low.cpu().numpy(), self.standardise.high.cpu().numpy()
        return np.asarray(((inputs.dense < low) | (inputs.dense > high)).any(axis=1))

    def encode(self, numbers: Float[Tensor, "*s D"]) -> Float[Tensor, "*s E"]:
        """Encode numbers that are tensors already (the points of a box, while climbing)."""
        return self.linear(self.standardise(numbers))


class PointEncoder(Encoder):
    """A linear map of a point and of random Fourier features over the box it lies in.

    They let a small network follow rewards that rise and fall many times (Rahimi and Recht,
    "Random features for large-scale kernel machines", 2007). They have lengths of several
    scales, longer in more dimensions, where points lie further apart.
    """

    lowest: Tensor
    sides: Tensor
    frequencies: Tensor
    phases: Tensor

    def __init__(
        self, features: Point, embedding: int, *, fourier_features: int, rng: Generator
    ) -> None:
        super().__init__()
        dim = features.dim
        lowest, highest = torch.tensor(features.low), torch.tensor(features.high)
        scales = torch.tensor(_FOURIER_SCALES).repeat(-(-fourier_features // len(_FOURIER_SCALES)))[
            :fourier_features
        ]
        directions = torch.randn(fourier_features, dim, generator=rng)
        self.register_buffer("lowest", lowest)
        self.register_buffer("sides", highest - lowest)
        self.register_buffer("frequencies", directions / (scales[:, None] * math.sqrt(dim)))
        self.register_buffer("phases", 2 * math.pi * torch.rand(fourier_features, generator=rng))
        self.linear = linear(dim + fourier_features, embedding, rng=rng)

    def fit(self, inputs: Inputs) -> None:
        """Need nothing: the box says what is large."""

    def forward(self, inputs: Inputs) -> Float[Tensor, "B E"]:
        assert inputs.dense is not None
        return self.encode(_tensor(inputs.dense, self.linear.weight))

    def encode(self, numbers: Float[Tensor, "*s D"]) -> Float[Tensor, "*s E"]:
        within = (numbers - self.lowest) / self.sides  # from 0 to 1 along each side
        fourier_features = math.sqrt(2) * torch.cos(within @ self.frequencies.T + self.phases)
        return self.linear(torch.cat([within - 0.5, fourier_features], dim=-1))


class SparseEncoder(Encoder):
    """A sum of word vectors, weighted by each row's numbers scaled to length 1."""

    def __init__(self, features: Sparse, embedding: int, *, rng: Generator) -> None:
        super().__init__()
        self.weight = _normal_table(features.dim, embedding, rng=rng)

    def fit(self, inputs: Inputs) -> None:
        """Need nothing: rows are scaled one by one."""

    def forward(self, inputs: Inputs) -> Float[Tensor, "B E"]:
        matrix = inputs.sparse
        assert matrix is not None
        device = self.weight.device
        counts = np.diff(matrix.indptr)
        squares = np.add.reduceat(np.append(matrix.data**2, 0), matrix.indptr[:-1]) * (counts > 0)
        scale = 1 / np.sqrt(np.where(squares > 0, squares, 1))
        weights = matrix.data * np.repeat(scale, counts)
        return F.embedding_bag(
            torch.as_tensor(matrix.indices, dtype=torch.int64, device=device),
            self.weight,
            torch.as_tensor(matrix.indptr[:-1], dtype=torch.int64, device=device),
            per_sample_weights=torch.as_tensor(weights, dtype=torch.float32, device=device),
            mode="sum",
        )


class ImageEncoder(Encoder):
    """Two convolutions, each followed by max-pooling, then a linear map."""

    def __init__(self, features: Image, embedding: int, *, rng: Generator) -> None:
        super().__init__()
        self.standardise = Standardise(())
        self.first = convolution(1, 8, rng=rng)
        self.second = convolution(8, 16, rng=rng)
        pixels = (features.height // 2 // 2) * (features.width // 2 // 2)
        self.linear = linear(16 * pixels, embedding, rng=rng)

    def fit(self, inputs: Inputs) -> None:
        self.standardise.fit(inputs.dense)

    def forward(self, inputs: Inputs) -> Float[Tensor, "B E"]:
        assert inputs.dense is not None
        images = _tensor(inputs.dense, self.linear.weight)
        planes = self.standardise(images)[:, None]  # (B, 1, height, width)
        for layer in (self.first, self.second):
            planes = F.max_pool2d(F.leaky_relu(layer(planes), 0.1), 2)
        return self.linear(planes.flatten(1))


class IdEncoder(Encoder):
    """One vector for each id; ids that came after the last `fit` share a vector of zeros."""

    def __init__(self, features: Ids, embedding: int, *, rng: Generator) -> None:
        super().__init__()
        self.weight = _normal_table(features.count, embedding, rng=rng)

    def fit(self, inputs: Inputs) -> None:
        assert inputs.ids is not None
        missing = int(inputs.ids.max(initial=-1)) + 1 - len(self.weight)
        if missing > 0:
            rng = torch.Generator().manual_seed(len(self.weight))
            more = _normal_table(missing, self.weight.shape[1], rng=rng).to(self.weight.device)
            self.weight = nn.Parameter(torch.cat([self.weight.detach(), more.detach()]))

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take over the saved number of ids, whatever the number so far."""
        saved = state.get(f"{prefix}weight")
        if saved is not None:
            if saved.ndim != 2 or not len(saved) or saved.shape[1] != self.weight.shape[1]:
                raise ValueError(f"{prefix}weight has shape {tuple(saved.shape)}")
            self.weight = nn.Parameter(saved.to(self.weight), requires_grad=False)
        super()._load_from_state_dict(state, prefix, *rest)

    def forward(self, inputs: Inputs) -> Float[Tensor, "B E"]:
        assert inputs.ids is not None
        ids = _tensor(inputs.ids, self.weight)
        is_known = ids < len(self.weight)
        return self.weight[torch.where(is_known, ids, 0)] * is_known[:, None]


class FeaturesAndIdsEncoder(Encoder):
    """The sum of what the features say and what the id says."""

    def __init__(self, features: FeaturesAndIds, embedding: int, *, rng: Generator) -> None:
        super().__init__()
        self.features = encoder_for(features.features, embedding, rng=rng)
        self.ids = IdEncoder(features.ids, embedding, rng=rng)

    def fit(self, inputs: Inputs) -> None:
        self.features.fit(inputs)
        self.ids.fit(inputs)

    def forward(self, inputs: Inputs) -> Float[Tensor, "B E"]:
        return self.features(inputs) + self.ids(inputs)

    def is_clipped(self, inputs: Inputs) -> NDArray[np.bool_]:
        return self.features.is_clipped(inputs)

    def weight_penalty(self) -> Float[Tensor, ""]:
        return self.features.weight_penalty() + self.ids.weight_penalty()


def encoder_for(
    features: Features, embedding: int, *, fourier_features: int = 0, rng: Generator
) -> Encoder:
    match features:
        case Dense():
            return DenseEncoder(features, embedding, rng=rng)
        case Point():
            return PointEncoder(features, embedding, fourier_features=fourier_features, rng=rng)
        case Sparse():
            return SparseEncoder(features, embedding, rng=rng)
        case Image():
            return ImageEncoder(features, embedding, rng=rng)
        case Ids():
            return IdEncoder(features, embedding, rng=rng)
        case FeaturesAndIds():
            return FeaturesAndIdsEncoder(features, embedding, rng=rng)
    raise SettingError(
        f"No encoder reads {features!r}. Known: Dense, Point, Sparse, Image, Ids, FeaturesAndIds."
    )


def _tensor(array: NDArray[Any], like: Tensor) -> Tensor:
    """Bring an array to the device of the weights (a copy: the array may be read-only)."""
    return torch.tensor(array, device=like.device)


def _normal_table(rows: int, columns: int, *, rng: Generator) -> nn.Parameter:
    return nn.Parameter(0.1 * torch.randn(rows, columns, generator=rng))
