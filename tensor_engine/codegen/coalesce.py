"""Coalescing: scalar accesses to neighbouring elements become one vector access.

It runs when everything is written out, because only then all neighbours can be seen.
"""
from __future__ import annotations

from collections.abc import Iterator

from tensor_engine.dtype import DType
from tensor_engine.renderer import Renderer
from tensor_engine.uop.linear_form import LinearForm, linear_form, rebuild
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp

Access = tuple[int, UOp]  # constant part of the offset, the LOAD or STORE


def coalesce(sink: UOp, renderer: Renderer) -> UOp:
    """Neighbouring scalar loads, and neighbouring scalar stores of one GROUP, merged."""
    nodes = sink.toposort()
    replaced: dict[UOp, UOp] = {}
    for run in runs([n for n in nodes if n.op is Ops.LOAD], renderer):
        replaced.update(merge_loads(run))
    for group in [n for n in nodes if n.op is Ops.GROUP]:
        merged = merge_stores(group, renderer)
        if merged is not group:
            replaced[group] = merged
    return replace_all(sink, replaced)


def replace_all(sink: UOp, replaced: dict[UOp, UOp]) -> UOp:
    """Like substitute, but replacements are looked into as well: a merged store holds merged loads."""
    loads = {old: new for old, new in replaced.items() if old.op is Ops.LOAD}
    groups = {old: new for old, new in replaced.items() if old.op is Ops.GROUP}
    sink = sink.substitute(groups) if groups else sink
    return sink.substitute(loads) if loads else sink


def runs(accesses: list[UOp], renderer: Renderer) -> Iterator[list[UOp]]:
    """Runs of accesses to neighbouring elements, as long as vector registers are wide (a power of two)."""
    groups: dict[object, list[Access]] = {}
    for access in accesses:
        address = access.src[0]
        if address.op is not Ops.INDEX or type_of(access).count > 1 or len(address.src) > 2:
            continue
        form = linear_form(address.src[1])
        base = (address.src[0], frozenset(form.terms.items()), access.op)
        groups.setdefault(base, []).append((form.constant, access))
    for members in groups.values():
        widest = max(renderer.vector_bytes // members[0][1].src[0].src[0].dtype.base.itemsize, 1)
        yield from neighbours(sorted(members, key=lambda member: member[0]), widest)


def type_of(access: UOp) -> DType:
    return access.dtype if access.op is Ops.LOAD else access.src[1].dtype


def neighbours(members: list[Access], widest: int) -> Iterator[list[UOp]]:
    """Cut a sorted list where a neighbour is missing, and into powers of two."""
    start = 0
    while start < len(members):
        stop = start + 1
        while stop < len(members) and members[stop][0] == members[stop - 1][0] + 1:
            stop += 1
        while start < stop:
            size = min(widest, 1 << (stop - start).bit_length() - 1)
            if size > 1:
                yield [access for _, access in members[start : start + size]]
            start += size


def merge_loads(run: list[UOp]) -> dict[UOp, UOp]:
    """One vector load; each scalar load becomes one of its lanes."""
    address = first_address(run)
    wide = UOp(Ops.LOAD, run[0].dtype.vec(len(run)), (address,))
    return {load: UOp(Ops.GEP, load.dtype, (wide,), (lane,)) for lane, load in enumerate(run)}


def first_address(run: list[UOp]) -> UOp:
    """The lowest address, its offset in canonical form."""
    address = run[0].src[0]
    form = linear_form(address.src[1])
    return address.src[0].index(rebuild(LinearForm(form.terms, form.constant), address.src[1].dtype))


def merge_stores(group: UOp, renderer: Renderer) -> UOp:
    """The group with neighbouring scalar stores written at once."""
    stores = [s for s in group.src if s.op is Ops.STORE]
    merged: list[UOp] = []
    gone: set[UOp] = set()
    for run in runs(stores, renderer):
        values = tuple(store.src[1] for store in run)
        vector = UOp(Ops.VECTORIZE, values[0].dtype.vec(len(run)), values)
        merged.append(first_address(run).store(vector))
        gone.update(run)
    return UOp.group(*(s for s in group.src if s not in gone), *merged) if merged else group
