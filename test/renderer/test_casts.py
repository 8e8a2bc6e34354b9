"""CAST and BITCAST between all types, on every CPU path."""
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear import BACKENDS, Compiled, Kernel, empty
from renderer.test_arithmetic import SIZE, fuzz, on_every_path, scalar_and_vector, values

from tensor_engine.device import numpy_dtype
from tensor_engine.dtype import DType, dtypes
from tensor_engine.renderer.llvmir import LLVMRenderer
from tensor_engine.uop.op import Ops

# C has no casts of vectors: they come lane by lane
CASTING_PATHS = [(b, lanes) for b in BACKENDS for lanes in (1, 8) if lanes == 1 or b != "CPU:C"]
on_casting_paths = pytest.mark.parametrize("backend,lanes", CASTING_PATHS)
SOURCES = (dtypes.float32, dtypes.float64, dtypes.float16)
NUMBERS = [d for d in dtypes.all if d is not dtypes.bfloat16]


@functools.cache
def compiled(backend: str, op: Ops, source: DType, targets: tuple[DType, ...], lanes: int) -> Compiled:
    kernel = Kernel("convert")
    outputs = [kernel.param(i, d, SIZE) for i, d in enumerate(targets)]
    data = kernel.param(len(targets), source, SIZE)
    loop = kernel.loop(SIZE // lanes)
    offset = kernel.alu(Ops.MUL, loop, kernel.const(dtypes.int32, lanes))
    value = kernel.load(data, offset, lanes)
    for output in outputs:
        converted = kernel.add(op, output.dtype.base.vec(lanes), (value,))
        last = kernel.store(output, offset, converted)
    kernel.end(last, loop)
    return Compiled(kernel, backend)


def convert(backend, op: Ops, source: DType, targets: list[DType], lanes: int, data: np.ndarray) -> list[np.ndarray]:
    outputs = [empty(d, SIZE) for d in targets]
    compiled(backend, op, source, tuple(targets), lanes)(*outputs, data)
    return outputs


def in_range(data: np.ndarray, target: DType) -> np.ndarray:
    """Floats that fit an integer type, as code generation guarantees; others become 1."""
    low, high = float(target.min), float(target.max)
    with np.errstate(invalid="ignore", over="ignore"):
        fits = (data > low - 1) & (data < high) & (np.trunc(data.astype(np.float64)) >= low)
    return np.where(fits, data, data.dtype.type(1))


@on_casting_paths
@pytest.mark.parametrize("source", NUMBERS, ids=str)
def test_casts_agree_with_numpy(backend, lanes, source):
    @fuzz
    @given(values(source))
    def agree(data):
        with np.errstate(all="ignore"):
            targets = [d for d in NUMBERS if source.kind != "f" or d.kind not in "iu"]
            for target, output in zip(targets, convert(backend, Ops.CAST, source, targets, lanes, data)):
                np.testing.assert_array_equal(output, data.astype(numpy_dtype(target)), err_msg=f"{target} {data}")

    agree()


@on_casting_paths
@pytest.mark.parametrize("source", [dtypes.float16, dtypes.float32, dtypes.float64], ids=str)
def test_floats_in_range_are_cut_to_integers(backend, lanes, source):
    @fuzz
    @given(values(source))
    def agree(data):
        targets = [*dtypes.ints]
        for target in targets:  # all get values that fit the target looked at; the others' results do not matter
            fitting = in_range(data, target)
            output = convert(backend, Ops.CAST, source, targets, lanes, fitting)[targets.index(target)]
            np.testing.assert_array_equal(output, fitting.astype(numpy_dtype(target)))

    agree()


def nearest_bfloat16(value: np.float32) -> int:
    """The bits of the nearest of the two neighbours, the even one if both are as near. Not for NaN."""
    bits = int(value.view(np.uint32))
    if np.isinf(value):
        return bits >> 16
    below, above = bits >> 16, (bits >> 16) + 1
    low, high = (np.uint32(b << 16 & 0xFFFFFFFF).view(np.float32).astype(np.longdouble) for b in (below, above))
    if np.isinf(high):  # what would come after the largest value
        high = np.copysign(np.longdouble(2) ** 128, high)
    distances = abs(np.longdouble(value) - low), abs(np.longdouble(value) - high)
    if distances[0] == distances[1]:
        return below if below % 2 == 0 else above
    return below if distances[0] < distances[1] else above


@on_casting_paths
def test_bfloat16_rounds_to_nearest_even(backend, lanes):
    @fuzz
    @given(values(dtypes.float32))
    def agree(data):
        data = data.copy()
        data[::3] = (data.view(np.uint32)[::3] & 0xFFFF0000 | 0x8000).view(np.float32)  # halfway between two
        (output,) = convert(backend, Ops.CAST, dtypes.float32, [dtypes.bfloat16], lanes, data)
        nan = np.isnan(data)
        np.testing.assert_array_equal(output[~nan], [nearest_bfloat16(x) for x in data[~nan]])
        assert np.isnan((output[nan].astype(np.uint32) << 16).view(np.float32)).all()

    agree()


@on_casting_paths
def test_bfloat16_to_float32_is_exact(backend, lanes):
    @fuzz
    @given(values(dtypes.uint16))
    def agree(bits):
        (output,) = convert(backend, Ops.CAST, dtypes.bfloat16, [dtypes.float32], lanes, bits)
        np.testing.assert_array_equal(output, (bits.astype(np.uint32) << 16).view(np.float32))

    agree()


@on_every_path
def test_double_to_half_is_rounded_once(backend):
    """Just above the middle of two halves: rounding to float first would lose the last bit that matters."""
    ties = np.array([1 + 2**-11, 1 + 3 * 2**-11, 2**-24 * 1.5, 65519.99999999999, 0.0], np.float64)
    data = np.resize(np.concatenate([np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf), -ties]), SIZE)
    (output,) = convert(backend, Ops.CAST, dtypes.float64, [dtypes.float16], 1, data)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(output, data.astype(np.float16))


@on_every_path
def test_halves_become_floats_and_back(backend):
    edges = [0x0000, 0x03F8, 0x0400, 0x3C00, 0x7BF0, 0x7C00, 0x7FF0]  # zero, subnormals, normals, infinity, NaN
    for start in [e | sign for e in edges for sign in (0, 0x8000)]:
        halves = np.arange(start, start + SIZE, dtype=np.uint16).view(np.float16)
        (floats,) = convert(backend, Ops.CAST, dtypes.float16, [dtypes.float32], 1, halves)
        np.testing.assert_array_equal(floats, halves.astype(np.float32))
        (back,) = convert(backend, Ops.CAST, dtypes.float32, [dtypes.float16], 1, floats)
        np.testing.assert_array_equal(back, halves)


@on_every_path
@scalar_and_vector
@pytest.mark.parametrize("source", dtypes.all[1:], ids=str)
def test_bitcasts_keep_the_bits(backend, lanes, source):
    @fuzz
    @given(values(dtypes.uint16 if source is dtypes.bfloat16 else source))
    def agree(data):
        targets = [d for d in dtypes.all if d.bits == source.bits]
        for target, output in zip(targets, convert(backend, Ops.BITCAST, source, targets, lanes, data)):
            assert output.tobytes() == data.tobytes(), target

    agree()


@pytest.mark.parametrize("lanes", [1, 8])
def test_half_on_machines_that_cannot_convert_it(lanes):
    """By integer arithmetic, against numpy: floats and doubles of any bits, and halves."""
    renderer = LLVMRenderer(native_half=False)
    kernel = Kernel()
    floats, doubles, halves = (kernel.param(i, d, lanes) for i, d in enumerate(SOURCES))
    from_float, from_double = (kernel.param(i, dtypes.float16, lanes) for i in (3, 4))
    back = kernel.param(5, dtypes.float32, lanes)
    kernel.store(from_float, 0, kernel.cast(kernel.load(floats, 0, lanes), dtypes.float16))
    kernel.store(from_double, 0, kernel.cast(kernel.load(doubles, 0, lanes), dtypes.float16))
    kernel.store(back, 0, kernel.cast(kernel.load(halves, 0, lanes), dtypes.float32))
    program = Compiled(kernel, "CPU:LLVM", renderer)

    @settings(fuzz, max_examples=200)
    @given(*[values(d) for d in SOURCES], st.booleans())
    def agree(floats, doubles, halves, at_ties):
        if at_ties:
            floats = (halves.astype(np.float32).view(np.uint32) + np.uint32(0x1000)).view(np.float32)
            with np.errstate(invalid="ignore"):
                doubles = np.nextafter(floats.astype(np.float64), np.inf)
        outputs = [empty(dtypes.float16, SIZE), empty(dtypes.float16, SIZE), empty(dtypes.float32, SIZE)]
        inputs = [a[:lanes].copy() for a in (floats, doubles, halves)]
        program(*inputs, *outputs)
        with np.errstate(all="ignore"):
            expected = [inputs[0].astype(np.float16), inputs[1].astype(np.float16), inputs[2].astype(np.float32)]
        for output, right in zip(outputs, expected):
            np.testing.assert_array_equal(output[:lanes], right)

    agree()
