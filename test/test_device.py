"""Devices by name, buffers and allocators."""
import gc
import threading
import weakref

import numpy as np
import pytest

from tensor_engine.device import Buffer, Device, LRUAllocator
from tensor_engine.dtype import dtypes
from tensor_engine.helpers import Context, GlobalCounters
from tensor_engine.renderer.cstyle import CRenderer
from tensor_engine.renderer.llvmir import LLVMRenderer
from tensor_engine.runtime.cc import CompilerMissing

f32 = dtypes.float32
on_every_device = pytest.mark.parametrize("device", ["CPU", "PYTHON"])


# ---- names


@pytest.mark.parametrize("name", ["CPU", "cpu", "CPU:C", "cpu:llvm"])
def test_a_name_may_be_written_in_several_ways(name):
    assert Device.canonicalize(name) == "CPU"
    assert Device[name] is Device["CPU"]


@pytest.mark.parametrize("name", ["GPU", "CPU:FORTRAN", "", ":C", "CPU:C:C"])
def test_an_unknown_name_is_an_error_that_lists_the_devices(name):
    with pytest.raises(ValueError, match="CPU, PYTHON, CPU:LLVM, CPU:C, DISK:path$"):
        Device.canonicalize(name)


def test_the_setting_chooses_device_and_renderer():
    with Context(DEV="PYTHON"):
        assert Device.DEFAULT == Device.canonicalize(None) == "PYTHON"
        assert Device["CPU"].renderer.name == "LLVM"
    with Context(DEV="CPU:C"):
        assert Device.DEFAULT == "CPU"
        assert isinstance(Device["CPU"].renderer, CRenderer)
    with Context(DEV="CPU"):
        assert isinstance(Device["CPU"].renderer, LLVMRenderer)
    with Context(DEV="NPU"), pytest.raises(ValueError, match="NPU"):
        Device.DEFAULT  # noqa: B018


def test_a_device_is_opened_once():
    Device.opened.pop("PYTHON", None)
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(Device["PYTHON"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8 and len(set(map(id, seen))) == 1


def test_a_missing_c_compiler_says_what_to_do():
    runtime = type(Device["CPU"])()
    with Context(DEV="CPU:C", CC="no-such-compiler"), pytest.raises(CompilerMissing, match="CC.*DEV=CPU:LLVM"):
        runtime.compiler  # noqa: B018


# ---- buffers


@on_every_device
def test_what_is_copied_in_comes_out(device):
    source = np.arange(100, dtype=np.float32)
    buffer = Buffer(device, 100, f32)
    assert not buffer.is_allocated
    buffer.copyin(source.data)
    back = np.empty_like(source)
    buffer.copyout(back.data)
    np.testing.assert_array_equal(back, source)
    np.testing.assert_array_equal(buffer.numpy(), source)


@on_every_device
@pytest.mark.parametrize("nbytes", [396, 404, 0])
def test_copies_of_the_wrong_size_are_errors(device, nbytes):
    with pytest.raises(ValueError, match=f"{nbytes} bytes do not fit .* which has 400"):
        Buffer(device, 100, f32).copyin(memoryview(bytearray(nbytes)))
    with pytest.raises(ValueError, match=f"{nbytes} bytes do not fit"):
        Buffer(device, 100, f32).copyout(memoryview(bytearray(nbytes)))


@on_every_device
def test_an_empty_buffer(device):
    buffer = Buffer(device, 0, f32).copyin(memoryview(b""))
    assert buffer.numpy().shape == (0,)
    assert Buffer.from_numpy(np.empty(0, np.float32), f32, device).numpy().size == 0


@on_every_device
def test_a_numpy_view_keeps_the_memory_alive(device):
    buffer = Buffer(device, 1000, f32).copyin(np.arange(1000, dtype=np.float32).data)
    view, alive = buffer.numpy(), weakref.ref(buffer)
    del buffer
    gc.collect()
    others = [Buffer(device, 1000, f32).copyin(np.full(1000, -1, np.float32).data) for _ in range(4)]
    np.testing.assert_array_equal(view, np.arange(1000))
    assert others
    del view
    gc.collect()
    assert alive() is None


@on_every_device
def test_a_view_of_an_array_shares_its_memory(device):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    buffer = Buffer.from_numpy(array, f32, device)
    array[1, 2] = 50
    assert buffer.numpy()[5] == 50
    buffer.numpy()[0] = 7
    assert array[0, 0] == 7
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is not None


def test_arrays_that_do_not_fit_are_errors():
    with pytest.raises(ValueError, match="contiguous"):
        Buffer.from_numpy(np.zeros((4, 4), np.float32).T[:2], f32)
    with pytest.raises(ValueError, match="width"):
        Buffer.from_numpy(np.zeros(4), f32)


@on_every_device
def test_parts_of_a_buffer(device):
    whole = Buffer(device, 8, f32).copyin(np.arange(8, dtype=np.float32).data)
    part = whole.view(4, f32, 8)
    inner = part.view(2, dtypes.int32, 4)
    np.testing.assert_array_equal(part.numpy(), [2, 3, 4, 5])
    np.testing.assert_array_equal(inner.numpy().view(np.float32), [3, 4])
    part.copyin(np.full(4, -1, np.float32).data)
    np.testing.assert_array_equal(whole.numpy(), [0, 1, -1, -1, -1, -1, 6, 7])
    for size, start in [(9, 0), (1, 32), (1, -4)]:
        with pytest.raises(ValueError, match="not all within"):
            whole.view(size, f32, start)
    del whole, part
    gc.collect()
    np.testing.assert_array_equal(inner.numpy().view(np.float32), [-1, -1])


def test_memory_in_use_is_counted():
    gc.collect()
    before = GlobalCounters.mem_used
    buffer = Buffer("CPU", 1000, f32)
    assert GlobalCounters.mem_used == before
    part = buffer.view(10, f32)
    part.allocate()
    assert GlobalCounters.mem_used == before + 4000
    del buffer
    gc.collect()
    assert GlobalCounters.mem_used == before + 4000
    del part
    gc.collect()
    assert GlobalCounters.mem_used == before


def test_cpu_memory_is_aligned():
    sizes = [1, 4, 63, 100, 4095, 4096, 100_000]
    buffers = [Buffer("CPU", size, dtypes.uint8).allocate() for size in sizes]
    assert [b.opaque % (4096 if b.nbytes >= 4096 else 64) for b in buffers] == [0] * len(sizes)


def test_too_much_memory_is_an_error_with_sizes():
    with pytest.raises(MemoryError, match=r"CPU has no .* TB left for 1000000000000000 elements of dtypes.float32"):
        Buffer("CPU", 10**15, f32).allocate()


# ---- blocks that are kept


class CountedAllocator(LRUAllocator):
    """Handles are numbers; fails when more than `limit` bytes are out."""

    def __init__(self, keep_bytes=100, limit=1000):
        super().__init__(keep_bytes)
        self.limit, self.held, self.made = limit, {}, 0

    def alloc_new(self, nbytes):
        if sum(self.held.values()) + nbytes > self.limit:
            raise MemoryError
        self.made += 1
        self.held[self.made] = nbytes
        return self.made

    def free_now(self, opaque, nbytes):
        assert self.held.pop(opaque) == nbytes

    offset = copyin = copyout = None


CountedAllocator.__abstractmethods__ = frozenset()


def test_a_freed_block_is_used_again():
    allocator = CountedAllocator()
    first = allocator.alloc(40)
    allocator.free(first, 40)
    assert allocator.alloc(50) != first
    assert allocator.alloc(40) == first
    assert allocator.kept_bytes == 0


def test_the_longest_unused_blocks_leave_first():
    allocator = CountedAllocator(keep_bytes=100)
    blocks = [allocator.alloc(40) for _ in range(3)]
    for block in blocks:
        allocator.free(block, 40)
    assert set(allocator.held) == set(blocks[1:])
    assert allocator.kept_bytes == 80


def test_a_full_memory_gives_up_what_is_kept():
    allocator = CountedAllocator(keep_bytes=1000, limit=1000)
    allocator.free(allocator.alloc(600), 600)
    allocator.alloc(700)
    assert allocator.kept_bytes == 0
    with pytest.raises(MemoryError):
        allocator.alloc(400)


def test_threads_share_an_allocator():
    allocator = CountedAllocator(keep_bytes=500, limit=10**9)

    def work():
        for i in range(2000):
            allocator.free(allocator.alloc(i % 7 + 1), i % 7 + 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert allocator.kept_bytes == sum(allocator.held.values()) == sum(allocator.kept.values())
