"""The table of gradient rules, and the walk over the graph that applies them."""

from __future__ import annotations

import numpy as np
import pytest
from mixin.evaluate import evaluate

from tensor_engine import Tensor
from tensor_engine.dtype import dtypes
from tensor_engine.uop.gradient import GradientError, compute_gradient, pm_gradient
from tensor_engine.uop.op import GroupOp, Ops
from tensor_engine.uop.uop import UOp

FLOAT = dtypes.float64
WHOLE = {Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR}  # never of floats
TENSOR = {Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.DETACH, Ops.COPY, Ops.ASSIGN}


def memory(*shape):
    return UOp.new_buffer("CPU", int(np.prod(shape)), FLOAT).reshape(shape)


def operand(op):
    """Something with a node of this operation on top."""
    x = memory(2, 3)
    movement = {
        Ops.RESHAPE: (3, 2), Ops.PERMUTE: (1, 0), Ops.EXPAND: (2, 3), Ops.PAD: ((1, 0), (0, 1)),
        Ops.SHRINK: ((0, 1), (1, 3)), Ops.FLIP: (True, False), Ops.SHEAR: (1, 0, 2),
    }  # fmt: skip
    if op in movement:
        return x.movement(op, movement[op])
    if op is Ops.COPY:
        return x.copy_to_device("PYTHON")
    if op is Ops.ASSIGN:
        return UOp(op, FLOAT, (x, x.shrink([(0, 1), (1, 3)]), memory(1, 2)))
    if op is Ops.WHERE:
        return x.lt(0).alu(op, x, memory(2, 3))
    count = 1 if op in GroupOp.UNARY | TENSOR | {Ops.CAST, Ops.BITCAST} else 3 if op is Ops.MULACC else 2
    return UOp(op, FLOAT, (x, *[memory(2, 3) for _ in range(count - 1)]))


@pytest.mark.parametrize(
    "op", sorted((GroupOp.ELEMENTWISE | GroupOp.MOVEMENT | TENSOR) - WHOLE), ids=lambda op: op.name
)
def test_every_operation_has_a_rule(op):
    node = operand(op)
    gradients = pm_gradient.rewrite(node, node.const_like(1.0))
    assert len(gradients) == len(node.src)
    for gradient, source in zip(gradients, node.src):
        assert gradient is None or (gradient.shape, gradient.dtype) == (source.shape, source.dtype)


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX])
def test_every_reduction_has_a_rule(op):
    x = memory(2, 3, 4)
    node = x.reduce_axis(op, (0, 2))
    (gradient,) = pm_gradient.rewrite(node, node.const_like(1.0))
    assert (gradient.shape, gradient.dtype) == (x.shape, x.dtype)


def test_what_is_written_by_hand_has_none():
    x = memory(3)
    call = UOp(Ops.CALL, FLOAT, (x.contiguous(), x), "some function")
    with pytest.raises(GradientError, match="CALL has no gradient"):
        compute_gradient(call.sum(), UOp.const(FLOAT, 1.0), [x])
    assert x not in compute_gradient(call.detach().sum(), UOp.const(FLOAT, 1.0), [x])


def test_only_the_way_to_the_targets_is_walked():
    x, y = memory(3), memory(3)
    hard = UOp(Ops.CALL, FLOAT, (y.contiguous(), y), "some function")
    found = compute_gradient((x * hard).sum(), UOp.const(FLOAT, 1.0), [x])
    assert x in found
    assert y not in found


def test_targets_below_targets():
    x = memory(3)
    y = x * x
    found = compute_gradient((y * y).sum(), UOp.const(FLOAT, 1.0), [x, y])
    values = {x.base: np.array([1.0, 2.0, 3.0])}
    np.testing.assert_allclose(evaluate(found[y], values), [2, 8, 18])
    np.testing.assert_allclose(evaluate(found[x], values), [4, 32, 108])


def test_deep_graphs():
    x = memory(1)
    node = x
    for _ in range(2000):
        node = node.sin()
    found = compute_gradient(node, node.const_like(1.0), [x])
    assert found[x].shape == (1,)


def test_nodes_and_tensors_share_the_method():
    x = memory(3)
    (found,) = (x * x).sum().gradient(x)
    np.testing.assert_array_equal(evaluate(found, {x.base: np.array([1.0, 2.0, 3.0])}), [2, 4, 6])
    assert Tensor.gradient is UOp.gradient
