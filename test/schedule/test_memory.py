"""The memory plan: no two values that live at the same time overlap, and memory is used again."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
from graphs import Program, programs, run_engine, run_numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensor_engine import Tensor
from tensor_engine.dtype import dtypes
from tensor_engine.engine import realize
from tensor_engine.schedule.memory import ALIGNMENT, FreeList, MemoryPlan, plan_memory
from tensor_engine.uop.op import Ops
from tensor_engine.uop.uop import UOp


def step(*buffers: UOp) -> UOp:
    """A kernel that writes the first buffer and reads the others."""
    return UOp(Ops.KERNEL, src=buffers, arg=UOp.sink())


def buffers(*sizes: int) -> list[UOp]:
    return [UOp.new_buffer("CPU", size, dtypes.float32) for size in sizes]


def check_plan(linear: UOp, keep: list[UOp], plan: MemoryPlan) -> None:
    """What is temporary has a place; places in use at the same time are apart, aligned and within the arena."""
    life: dict[UOp, list[int]] = {}
    for number, node in enumerate(linear.src):
        for buffer in node.src:
            life.setdefault(buffer, []).append(number)
    assert set(plan.offsets) == {b for b in life if b not in keep}
    for buffer, offset in plan.offsets.items():
        assert offset % ALIGNMENT == 0
        assert offset + buffer.arg.size * buffer.dtype.itemsize <= plan.arena_sizes[buffer.arg.device]
    for first, second in itertools.combinations(plan.offsets, 2):
        together = life[first][0] <= life[second][-1] and life[second][0] <= life[first][-1]
        if together and first.arg.device == second.arg.device:
            start, end = extent(first, plan)
            other_start, other_end = extent(second, plan)
            assert end <= other_start or other_end <= start, f"{first.arg} and {second.arg} overlap"


def extent(buffer: UOp, plan: MemoryPlan) -> tuple[int, int]:
    start = plan.offsets[buffer]
    return start, start + buffer.arg.size * buffer.dtype.itemsize


@st.composite
def linears(draw: st.DrawFn) -> tuple[UOp, list[UOp]]:
    """Kernels that each write a new buffer and read some older ones, on one device or two."""
    made: list[UOp] = []
    steps = []
    for _ in range(draw(st.integers(1, 25))):
        size = draw(st.sampled_from([0, 1, 15, 16, 17, 64, 1000, 4096]))
        target = UOp.new_buffer(draw(st.sampled_from(["CPU", "CPU", "PYTHON"])), size, dtypes.float32)
        reads = draw(st.lists(st.sampled_from(made), max_size=3, unique=True)) if made else []
        made.append(target)
        steps.append(step(target, *reads))
    keep = draw(st.lists(st.sampled_from(made), max_size=3, unique=True))
    return UOp(Ops.LINEAR, src=tuple(steps)), keep


@given(linears())
@settings(max_examples=200, derandomize=True)
def test_no_two_living_values_overlap(case: tuple[UOp, list[UOp]]) -> None:
    linear, keep = case
    check_plan(linear, keep, plan_memory(linear, keep))


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=60))
@settings(max_examples=200, derandomize=True)
def test_a_free_list_hands_out_no_byte_twice(actions: list[tuple[bool, int]]) -> None:
    free, taken = FreeList(), {}
    for take, size in actions:
        if take or not taken:
            start = free.take(size)
            assert all(start + size <= s or s + n <= start for s, n in taken.items())
            assert start + size <= free.size
            taken[start] = size
        else:
            start = list(taken)[size % len(taken)]
            free.give_back(start, taken.pop(start))
    assert sum(n for _, n in free.gaps) + sum(taken.values()) == free.size, "no byte is lost"


def test_a_chain_needs_room_for_two() -> None:
    chain = buffers(*[1000] * 10)
    linear = UOp(Ops.LINEAR, src=tuple(step(b, a) for a, b in itertools.pairwise(chain)))
    plan = plan_memory(linear, keep=[chain[0]])
    assert plan.arena_sizes["CPU"] == 2 * -(-4000 // ALIGNMENT) * ALIGNMENT


def test_kept_buffers_have_no_place_in_the_arena() -> None:
    a, b, c = buffers(4, 4, 4)
    linear = UOp(Ops.LINEAR, src=(step(b, a), step(c, b)))
    assert set(plan_memory(linear, keep=[a, c]).offsets) == {b}


# ---- the engine as a whole -----------------------------------------------------------------------------------------


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[MemoryPlan]:
    """The plans of all runs, each checked."""
    found: list[MemoryPlan] = []

    def plan_and_check(linear: UOp, keep: list[UOp]) -> MemoryPlan:
        kept = list(keep)
        plan = plan_memory(linear, kept)
        check_plan(linear, [b for b in {b for s in linear.src for b in s.src} if b not in plan.offsets], plan)
        found.append(plan)
        return plan

    monkeypatch.setattr(realize, "plan_memory", plan_and_check)
    return found


def test_values_survive_where_memory_is_used_again(plans: list[MemoryPlan]) -> None:
    data = np.arange(64, dtype=np.float32)
    x, want, sums = Tensor(data), data, []
    for i in range(12):
        x, want = (x + i).contiguous(), want + i
        sums.append((x.sum(), want.sum()))
    first, *rest = [s for s, _ in sums]
    first.realize(*rest)
    assert [s.item() for s, _ in sums] == [w for _, w in sums]
    needed = sum(b.arg.size * 4 for plan in plans for b in plan.offsets)
    assert sum(plan.arena_sizes.get("CPU", 0) for plan in plans) < needed / 3


@given(programs(most_steps=14))
@settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs_whose_every_step_is_stored(program: Program) -> None:
    """Many buffers with many lives: each step's value is stored, and the outputs are as numpy has them."""
    for want, found in zip(run_numpy(program), run_engine(program, "CPU", store_all=True)):
        np.testing.assert_array_equal(found, want)
