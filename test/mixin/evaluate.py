"""A second opinion on what a graph means: numpy evaluates the tensor-level nodes one by one, as their comments say.

It shares nothing with the engine but the graph, so that it can judge the mixins (what graph do they build?) and the
engine (does it compute what the graph says?).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensor_engine.dtype import dtypes, float_cast_via
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp


def evaluate(node: UOp, memory: dict[UOp, np.ndarray] | None = None) -> np.ndarray:
    """The value of `node`. `memory`: the flat content of leaves; that of buffers in use is found in the engine.

    bfloat16 is computed as float32 rounded after every operation.
    """
    values: dict[UOp, Any] = {}
    with np.errstate(all="ignore"):
        for n in node.toposort():
            if n.op not in (Ops.DEVICE, Ops.UNIQUE):
                values[n] = rounded(value_of(n, [values.get(s) for s in n.src], memory or {}), n)
    return values[node]


def numpy_type(dtype: Any) -> np.dtype:
    return np.dtype({"bfloat16": "float32", "index": "int64"}.get(dtype.name, dtype.name))


def rounded(value: Any, node: UOp) -> np.ndarray:
    """As an array of the node's shape and type."""
    array = np.asarray(value).astype(numpy_type(node.dtype))
    if node.dtype is dtypes.bfloat16:
        bits = array.view(np.uint32)
        up = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32)
        array = np.where(np.isnan(array), array, up.view(np.float32))
    assert array.shape == node.shape, f"{node.op} {node.arg} has shape {array.shape}, the node says {node.shape}"
    return array


def value_of(node: UOp, src: list[np.ndarray], memory: dict[UOp, np.ndarray]) -> Any:
    op, arg = node.op, node.arg
    if node in memory:
        return memory[node].reshape(node.shape)
    if op is Ops.CONST:
        return np.array(arg, numpy_type(node.dtype))
    if op is Ops.ARANGE:
        return np.arange(arg)
    if op is Ops.BUFFER:
        return attached(node)
    if op in (Ops.CONTIGUOUS, Ops.DETACH, Ops.COPY, Ops.CONTIGUOUS_BACKWARD):
        return src[0]
    if op is Ops.CAST:
        return cast(src[0], node)
    if op is Ops.BITCAST:
        assert node.dtype.itemsize == node.src[0].dtype.itemsize
        return src[0].view(numpy_type(node.dtype))
    if op in MOVEMENT:
        return MOVEMENT[op](src[0], arg)
    if op is Ops.REDUCE_AXIS:
        return REDUCE[arg[0]].reduce(src[0], axis=arg[1], keepdims=True, dtype=src[0].dtype)
    if op is Ops.ASSIGN:
        return assigned(node, *src)
    check_operands(node)
    return ALU[op](*src)


def check_operands(node: UOp) -> None:
    """ALU operands have one shape, and one type but for WHERE's condition."""
    operands = node.src[1:] if node.op is Ops.WHERE else node.src
    assert len({s.shape for s in node.src}) == 1, f"{node.op} of shapes {[s.shape for s in node.src]}"
    assert len({s.dtype for s in operands}) == 1, f"{node.op} of types {[s.dtype for s in operands]}"
    assert node.op is not Ops.WHERE or node.src[0].dtype is dtypes.bool


def assigned(node: UOp, before: np.ndarray, _: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The memory with the value in the places that the view shows."""
    after, places = before.copy(), np.arange(before.size)
    memory, view, _value = node.src
    for move in view.toposort(lambda below: below is not memory)[1:]:
        places = MOVEMENT[move.op](places, move.arg)
    after[places] = value
    return after


def attached(node: UOp) -> np.ndarray:
    from tensor_engine.engine.realize import buffer_of

    values = buffer_of(node).numpy()
    return (values.astype(np.uint32) << 16).view(np.float32) if node.dtype is dtypes.bfloat16 else values


def cast(value: np.ndarray, node: UOp) -> np.ndarray:
    """Floats to integers as `dtype.float_to_int` documents."""
    if node.dtype.kind not in "iu" or value.dtype.kind != "f":
        return value.astype(numpy_type(node.dtype))
    via = float_cast_via(node.dtype)
    cut = np.trunc(value.astype(np.float64))
    low, high = float(via.min), float(via.max) + (via.bits < 64)
    fits = (cut >= low) & (cut < high if via.bits < 64 else cut < high)
    default = 0 if via.name == "uint64" else int(via.min)
    safe = np.where(fits, cut, 0).astype(numpy_type(via))
    return np.where(fits, safe, np.array(default, numpy_type(via))).astype(numpy_type(node.dtype))


def shrink(value: np.ndarray, bounds: Any) -> np.ndarray:
    assert all(0 <= a <= b <= size for (a, b), size in zip(bounds, value.shape))
    return value[tuple(slice(a, b) for a, b in bounds)]


def expand(value: np.ndarray, shape: Any) -> np.ndarray:
    assert value.ndim == len(shape)
    return np.broadcast_to(value, shape)


def shear(value: np.ndarray, arg: Any) -> np.ndarray:
    axis, along, step = arg
    count = value.shape[along]
    length = value.shape[axis] - step * (count - 1)
    rows = [value.take([k], along).take(range(k * step, k * step + length), axis) for k in range(count)]
    return np.concatenate(rows, along)


MOVEMENT = {
    Ops.RESHAPE: lambda x, shape: x.reshape(shape),
    Ops.PERMUTE: lambda x, order: x.transpose(order),
    Ops.EXPAND: expand,
    Ops.PAD: lambda x, pads: np.pad(x, pads),
    Ops.SHRINK: shrink,
    Ops.FLIP: lambda x, turned: np.flip(x, [i for i, t in enumerate(turned) if t]),
    Ops.SHEAR: shear,
}
REDUCE = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum}


def floor_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b))


def threefry(counter: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Threefry-2x32 with 20 rounds (Salmon et al., SC 2011), from its definition: low words first."""
    rotations = [(13, 15, 26, 6), (17, 29, 16, 24)]
    mask = 0xFFFFFFFF
    out = []
    for c, k in zip(counter.ravel().tolist(), np.broadcast_to(key, counter.shape).ravel().tolist()):
        keys = [k & mask, k >> 32]
        keys.append(0x1BD11BDA ^ keys[0] ^ keys[1])
        x0, x1 = ((c & mask) + keys[0]) & mask, ((c >> 32) + keys[1]) & mask
        for group in range(5):
            for r in rotations[group % 2]:
                x0 = (x0 + x1) & mask
                x1 = (x1 << r | x1 >> (32 - r)) & mask ^ x0
            x0 = (x0 + keys[(group + 1) % 3]) & mask
            x1 = (x1 + keys[(group + 2) % 3] + group + 1) & mask
        out.append(x1 << 32 | x0)
    return np.array(out, np.uint64).reshape(counter.shape)


ALU = {
    Ops.NEG: np.negative,
    Ops.EXP2: np.exp2,
    Ops.LOG2: np.log2,
    Ops.SIN: np.sin,
    Ops.SQRT: np.sqrt,
    Ops.RECIPROCAL: lambda x: 1 / x,
    Ops.TRUNC: np.trunc,
    Ops.ADD: np.add,
    Ops.SUB: np.subtract,
    Ops.MUL: np.multiply,
    Ops.FDIV: np.divide,
    Ops.IDIV: floor_divide,
    Ops.MOD: lambda a, b: np.where(b == 0, 0, a - floor_divide(a, b) * b),
    Ops.MAX: np.maximum,
    Ops.CMPLT: np.less,
    Ops.CMPNE: np.not_equal,
    Ops.CMPEQ: np.equal,
    Ops.AND: np.bitwise_and,
    Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor,
    Ops.SHL: np.left_shift,
    Ops.SHR: np.right_shift,
    Ops.THREEFRY: threefry,
    Ops.WHERE: np.where,
    Ops.MULACC: lambda a, b, c: a * b + c,
}
