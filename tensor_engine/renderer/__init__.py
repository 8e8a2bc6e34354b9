"""Renderers: linear uops → text. Pure functions of their input; none touches the operating system."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from tensor_engine.dtype import DType, dtypes
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp


class RenderError(RuntimeError):
    """Linear uops that a renderer has no text for: a bug in code generation."""


class Renderer(ABC):
    """Linear uops → text, and what code generation must know of the target.

    `vector_bytes` is the width of the machine's vector registers (4: there are none), `registers` how many there are.
    `code_for_op` has the ALU operations that can be printed; those in `vector_ops` also on vectors, lane by lane.
    `storage_only`: types that are only loaded, stored, and cast to and from float32.
    `masked_memory`: LOAD and STORE may have a gate for every lane.
    `index_dtype` is the integer type that addresses are computed in, where their values fit.
    """

    name: str
    device: str
    vector_bytes: int = 4
    registers: int = 16
    code_for_op: dict[Ops, Callable[..., Any]]
    vector_ops: frozenset[Ops] = frozenset()
    masked_memory: bool = False
    storage_only: frozenset[DType] = frozenset({dtypes.bfloat16})
    index_dtype: DType = dtypes.int32

    @abstractmethod
    def render(self, uops: list[UOp]) -> str:
        """The kernel's text. Raises RenderError for what it does not know."""


def kernel_name(uops: list[UOp]) -> str:
    """The kernel's name, which its SINK carries."""
    sink = uops[-1]
    if sink.op is not Ops.SINK or not getattr(sink.arg, "name", ""):
        raise RenderError("the last linear uop must be a SINK whose arg has the kernel's name")
    return sink.arg.name


def without_after(node: UOp) -> UOp:
    """What an AFTER stands for."""
    while node.op is Ops.AFTER:
        node = node.src[0]
    return node


def pointer_of(address: UOp) -> UOp:
    """The PARAM or register that an address points into."""
    while address.op in (Ops.AFTER, Ops.INDEX):
        address = address.src[0]
    return address


def gate_of(address: UOp) -> UOp | None:
    """The condition under which an address may be touched; None if it always may."""
    node = without_after(address)
    return node.src[2] if node.op is Ops.INDEX and len(node.src) > 2 else None
