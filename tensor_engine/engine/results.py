"""What a captured function returns: each call's results in memory that no kept result of another call is in."""
from __future__ import annotations

import itertools
import operator
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from tensor_engine.device import Buffer
from tensor_engine.engine import realize
from tensor_engine.engine.arguments import Input, JitError
from tensor_engine.engine.nesting import leaves_of, rebuild
from tensor_engine.engine.references import Census
from tensor_engine.helpers import dedup
from tensor_engine.tensor import Tensor
from tensor_engine.uop.op import Ops
from tensor_engine.uop.size import Values, nodes_in, values_in, with_values
from tensor_engine.uop.uop import UOp

# Memory for the results of so many calls is kept for later ones. A loop that drops or rebinds its result needs two.
KEPT = 4


class Output(NamedTuple):
    """A returned Tensor: the view that it is of an input's memory, of fresh memory, or (both None) of other memory."""

    view: UOp
    input_number: int | None = None
    fresh_number: int | None = None

    def on(self, base: UOp, values: Values) -> UOp:
        """The same view of another BUFFER, with these values of its variables."""
        return realize.moved_like(self.view, self.view.base, base, values)

    @property
    def variables(self) -> set[str]:
        """What its sizes depend on."""
        args = [node.arg.size if node.op is Ops.BUFFER else node.arg for node in self.view.toposort()]
        return {variable for arg in args for variable in values_in(nodes_in(arg))}


class ResultMemory:
    """Fresh memory for the results of one call, and the nodes that name the results in it.

    `values` are those of the variables that their sizes depend on.
    """

    def __init__(self, fresh: list[Buffer], outputs: list[Output], values: Values):
        self.buffers = [Buffer(buffer.device, buffer.size, buffer.dtype) for buffer in fresh]
        self.values = values
        self.nodes = nodes_on(self.buffers, outputs, values)
        # True if nobody refers to the results, nor to anything that was made of them and is yet to be computed
        self.is_free = Census([*self.buffers, *nodes_below(self.nodes)]).unchanged


def nodes_on(buffers: list[Buffer], outputs: list[Output], values: Values) -> list[UOp]:
    """The nodes of those results that are in fresh memory."""
    sizes = {o.fresh_number: with_values(o.view.base.arg.size, values) for o in outputs if o.fresh_number is not None}
    bases = [realize.attach(UOp.new_buffer(b.device, sizes[i], b.dtype), b) for i, b in enumerate(buffers)]
    return [o.on(bases[o.fresh_number], values) for o in outputs if o.fresh_number is not None]


def nodes_below(nodes: list[UOp]) -> list[UOp]:
    """These nodes and what they are views of, each once."""
    return dedup(below for node in nodes for below in node.toposort())


class Results:
    """The results of a captured function."""

    def __init__(self, result: Any, inputs: list[Buffer], written: set[int], first_new: int):
        """`written`: ids of the memory that the kernels write. Memory numbered from `first_new` on was made by the
        captured call. Raises JitError for results that are no Tensors."""
        self.inputs, self.written, self.first_new = inputs, written, first_new
        self.fresh: list[Buffer] = []
        self.outputs = [self._describe(leaf) for leaf in leaves_of(result) if leaf is not None]
        self.variables = sorted(set[str]().union(*(output.variables for output in self.outputs)))
        self.arrange = arrangement(result)
        self.elsewhere = [(i, o) for i, o in enumerate(self.outputs) if o.fresh_number is None]
        self.kept: deque[ResultMemory] = deque(maxlen=KEPT)

    def _describe(self, leaf: Any) -> Output:
        if not isinstance(leaf, Tensor):
            raise JitError(
                f"a captured function returned {leaf!r:.80}, which every replay would repeat; return Tensors"
            )
        if leaf.uop.base.op is Ops.CONST:
            return Output(leaf.uop)
        buffer = realize.buffer_of(leaf.uop)
        for number, memory in enumerate(self.inputs):
            if memory is buffer:
                return Output(leaf.uop, input_number=number)
        if id(buffer) not in self.written or buffer.number < self.first_new:
            return Output(leaf.uop)
        return Output(leaf.uop, fresh_number=self._number_of(buffer))

    def _number_of(self, buffer: Buffer) -> int:
        for number, known in enumerate(self.fresh):
            if known is buffer:
                return number
        self.fresh.append(buffer)
        return len(self.fresh) - 1

    def fit(self, memory: ResultMemory, values: Values) -> bool:
        """May the results of a call with these values go there?"""
        return memory.is_free() and all(memory.values[name] == values[name] for name in self.variables)

    def memory(self, values: Values) -> ResultMemory:
        """Memory for one call's results: that of an earlier call of which nobody has a result any more, or new."""
        for memory in self.kept:
            if self.fit(memory, values):
                return memory
        memory = ResultMemory(self.fresh, self.outputs, {name: values[name] for name in self.variables})
        self.kept.append(memory)
        return memory

    def make(self, memory: ResultMemory, inputs: list[Input]) -> Any:
        """The Tensors that a call returns."""
        nodes = self._with_elsewhere(memory, inputs) if self.elsewhere else memory.nodes
        return self.arrange([Tensor.from_uop(node) for node in nodes])

    def _with_elsewhere(self, memory: ResultMemory, inputs: list[Input]) -> list[UOp]:
        nodes = list(memory.nodes)
        for position, output in self.elsewhere:
            nodes.insert(position, node_elsewhere(output, inputs, memory.values))
        return nodes


def arrangement(result: Any) -> Callable[[list[Tensor]], Any]:
    """A function that arranges Tensors like those in `result`."""
    if isinstance(result, Tensor):
        return operator.itemgetter(0)
    numbers = itertools.count()
    form = rebuild(result, lambda leaf: None if leaf is None else next(numbers))
    return lambda tensors: rebuild(form, lambda number: None if number is None else tensors[number])


def node_elsewhere(output: Output, inputs: list[Input], values: Values) -> UOp:
    """The node of a result that is not in fresh memory. Other memory than inputs may have another content now."""
    if output.input_number is not None:
        return output.on(inputs[output.input_number].node.base, values)  # type: ignore[union-attr]
    if output.view.base.op is Ops.BUFFER:
        return realize.next_version(output.view, values)
    return output.on(output.view.base, values) if values else output.view
