"""A graph of ONNX, written like formulas over arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.packages import needed

OPSET, IR_VERSION = 17, 8
Shape = tuple[str | int, ...]
Number = float | NDArray[np.floating[Any]]


@dataclass
class Graph:
    """Nodes, constants, inputs and outputs, in the order they were written."""

    name: str
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    @property
    def onnx(self) -> Any:
        return needed("onnx", what="Writing ONNX", extra="onnx")

    def input(self, name: str, shape: Shape, *, is_whole: bool = False) -> Signal:
        """Take an array that is given with each call."""
        self.inputs.append(self._value(name, shape, is_whole=is_whole))
        return Signal(self, name)

    def constant(self, array: Any) -> Signal:
        """Store an array in the graph: 32-bit floats, or whole numbers as they are."""
        array = np.asarray(array)
        array = array if array.dtype.kind in "iu" else array.astype(np.float32)
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array.copy(), name))
        return Signal(self, name)

    def node(
        self, kind: str, inputs: Sequence[Signal], attributes: dict[str, Any] | None = None
    ) -> Signal:
        """Apply one operation of ONNX, and return its first output."""
        return self.nodes_of(kind, inputs, attributes, outputs=1)[0]

    def nodes_of(
        self,
        kind: str,
        inputs: Sequence[Signal],
        attributes: dict[str, Any] | None = None,
        *,
        outputs: int,
    ) -> list[Signal]:
        """Apply one operation of ONNX, and return all of its outputs."""
        names = [f"{kind.lower()}_{len(self.nodes)}_{number}" for number in range(outputs)]
        given = [signal.name for signal in inputs]
        self.nodes.append(self.onnx.helper.make_node(kind, given, names, **(attributes or {})))
        return [Signal(self, name) for name in names]

    def output(self, name: str, signal: Signal, shape: Shape) -> None:
        """Return a signal back, under a name."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [signal.name], [name]))
        self.outputs.append(self._value(name, shape))

    def to_bytes(self, *, producer: str) -> bytes:
        """Return the graph as an ONNX file holds it, after a check."""
        helper = self.onnx.helper
        graph = helper.make_graph(
            self.nodes, self.name, self.inputs, self.outputs, initializer=self.constants
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name=producer)
        model.ir_version = IR_VERSION
        self.onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())

    def _value(self, name: str, shape: Shape, *, is_whole: bool = False) -> Any:
        kinds = self.onnx.TensorProto
        kind = kinds.INT64 if is_whole else kinds.FLOAT
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)


@dataclass(frozen=True)
class Signal:
    """An array that a graph works out, with the arithmetic of NumPy."""

    graph: Graph
    name: str

    def __add__(self, other: Signal | Number) -> Signal:
        return self._with("Add", other)

    def __sub__(self, other: Signal | Number) -> Signal:
        return self._with("Sub", other)

    def __mul__(self, other: Signal | Number) -> Signal:
        return self._with("Mul", other)

    def __truediv__(self, other: Signal | Number) -> Signal:
        return self._with("Div", other)

    def __matmul__(self, other: Signal | Number) -> Signal:
        return self._with("MatMul", other)

    def columns(self, first: int, last: int) -> Signal:
        """Return columns `first` to `last` - 1 of the last axis."""
        bounds = [self.graph.constant(np.array([number])) for number in (first, last, -1)]
        return self.graph.node("Slice", [self, *bounds])

    def wider(self, axis: int) -> Signal:
        """Return the array with one more axis, of length 1."""
        return self.graph.node("Unsqueeze", [self, self.graph.constant(np.array([axis]))])

    def narrower(self, axis: int) -> Signal:
        """Return the array without an axis of length 1."""
        return self.graph.node("Squeeze", [self, self.graph.constant(np.array([axis]))])

    def turned(self) -> Signal:
        """Return the array (B, rows, columns) as (B, columns, rows)."""
        return self.graph.node("Transpose", [self], {"perm": [0, 2, 1]})

    def summed(self) -> Signal:
        """Return sums over the last axis, which stays with length 1."""
        return self.graph.node("ReduceSum", [self, self.graph.constant(np.array([-1]))])

    def bent(self, leak: float) -> Signal:
        """Apply a leaky rectifier."""
        return self.graph.node("LeakyRelu", [self], {"alpha": leak})

    def bends(self, leak: float) -> Signal:
        """Return the slope of the leaky rectifier: 1 above zero, else `leak`."""
        zero, one, less = (self.graph.constant(number) for number in (0.0, 1.0, leak))
        return self.graph.node("Where", [self.graph.node("Greater", [self, zero]), one, less])

    def through(self, kind: str) -> Signal:
        """Apply an operation that takes nothing else: Log, Sqrt, Sigmoid, Tanh, Cos, Sin."""
        return self.graph.node(kind, [self])

    def within(self, lowest: Any, highest: Any) -> Signal:
        """Keep each number between two others."""
        bounds = [self.graph.constant(bound) for bound in (lowest, highest)]
        above = self.graph.node("Max", [self, bounds[0]])
        return self.graph.node("Min", [above, bounds[1]])

    def shaped(self, shape: Sequence[int]) -> Signal:
        """Return the same numbers in another shape; 0 keeps a length."""
        return self.graph.node("Reshape", [self, self.graph.constant(np.array(shape))])

    def beside(self, *others: Signal) -> Signal:
        """Join arrays along their last axis."""
        return self.graph.node("Concat", [self, *others], {"axis": -1})

    def _with(self, kind: str, other: Signal | Number) -> Signal:
        signal = other if isinstance(other, Signal) else self.graph.constant(other)
        return self.graph.node(kind, [self, signal])
