"""The tensors of a model by name, and files of them: safetensors (https://huggingface.co/docs/safetensors), PyTorch's.

The safetensors format is a JSON header and bytes. It is read and written here, without its library, so that tensors
stay in the file until they are needed: the library gives copies of the bytes, not the places where they are.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tensor_engine.dtype import DType, dtypes
from tensor_engine.helpers import inverse_permutation, prod, strides_for_shape
from tensor_engine.tensor import Tensor

# the names that the format has for our types
FILE_TYPES: dict[DType, str] = {
    dtypes.bool: "BOOL", dtypes.int8: "I8", dtypes.int16: "I16", dtypes.int32: "I32", dtypes.int64: "I64",
    dtypes.uint8: "U8", dtypes.uint16: "U16", dtypes.uint32: "U32", dtypes.uint64: "U64",
    dtypes.float16: "F16", dtypes.bfloat16: "BF16", dtypes.float32: "F32", dtypes.float64: "F64",
}  # fmt: skip


# ---- models -----------------------------------------------------------------------------------------------------


def get_state_dict(obj: Any, prefix: str = "", tensor_type: Any = Tensor) -> dict[str, Tensor]:
    """All tensors in an object's attributes, dicts, lists and tuples, named by the way to them: "layers.0.weight"."""
    if isinstance(obj, tensor_type):
        return {prefix.rstrip("."): obj}
    state: dict[str, Tensor] = {}
    for name, part in named_parts(obj):
        state.update(get_state_dict(part, f"{prefix}{name}.", tensor_type))
    return state


def named_parts(model: Any) -> list[tuple[Any, Any]]:
    """What an object is made of."""
    if hasattr(model, "_asdict"):
        return list(model._asdict().items())
    if isinstance(model, Mapping):
        return list(model.items())
    if isinstance(model, (list, tuple)):
        return list(enumerate(model))
    return list(getattr(model, "__dict__", {}).items())


def get_parameters(obj: Any) -> list[Tensor]:
    """All tensors of a model. Those whose `is_param` is False are no optimiser's to change."""
    return list(get_state_dict(obj).values())


def load_state_dict(
    model: Any,
    state_dict: Mapping[str, Tensor],
    strict: bool = True,
    verbose: bool = False,
    consume: bool = False,
    realize: bool = True,
) -> None:
    """Give the tensors of a model the values in `state_dict`, in the types, memory and devices that they have.

    `verbose` prints their names, `consume` takes them out of `state_dict` (a dict), which spares memory, and without
    `realize` the values are read when they are asked for.
    Raises KeyError for names that are missing or left over, unless not `strict`; ValueError for another shape.
    """
    state = get_state_dict(model)
    if strict and state.keys() != state_dict.keys():
        missing, unknown = state.keys() - state_dict.keys(), state_dict.keys() - state.keys()
        raise KeyError(f"the model lacks {sorted(unknown)}, the state lacks {sorted(missing)}; or pass strict=False")
    for name in sorted(state.keys() & state_dict.keys()):
        tensor, value = state[name], state_dict[name]
        if value.numel() != tensor.numel() or value.squeeze().shape != tensor.squeeze().shape:
            raise ValueError(f"{name} has shape {tensor.shape} in the model and {value.shape} in the state")
        tensor.assign(value.to(tensor.device).cast(tensor.dtype).reshape(tensor.shape))
        if realize:
            tensor.realize()
        if verbose:
            print(f"{name} {tensor.shape} {tensor.dtype}")
        if consume:
            del state_dict[name]  # type: ignore[attr-defined]


# ---- safetensors ------------------------------------------------------------------------------------------------


def safe_save(tensors: Mapping[str, Tensor], fn: str | Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a safetensors file. The widest types come first, so that all elements are aligned."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    end = 0
    for name in names:
        tensor, start = tensors[name], end
        end += tensor.nbytes()
        header[name] = {"dtype": FILE_TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(fn, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            file.write(tensors[name].data())


def safe_load(fn: str | Path, device: str | None = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file. They stay there until `.to(device)`, which is done here if one is given.

    Raises ValueError, which names the file and the entry, for what is damaged, and for types that the engine lacks.
    """
    content, header = opened(fn)
    tensors = {name: entry_of(content, name, header[name], fn) for name in header if name != "__metadata__"}
    return tensors if device is None else {name: tensor.to(device) for name, tensor in tensors.items()}


def safe_load_metadata(path: str | Path) -> dict[str, str]:
    """The texts that a safetensors file says about itself."""
    return opened(path)[1].get("__metadata__", {})


def opened(path: str | Path) -> tuple[Tensor, dict[str, Any]]:
    """What lies behind the header of a safetensors file, and the header."""
    file = Tensor(Path(path))
    length = int.from_bytes(file[:8].data(), "little")
    if file.numel() < 8 or length > file.numel() - 8:
        raise ValueError(f"{path} is no safetensors file, or was cut off: it has {file.numel()} bytes")
    try:
        header = json.loads(bytes(file[8 : 8 + length].data()))
    except ValueError as error:
        raise ValueError(f"{path} is no safetensors file: its header is no JSON ({error})") from None
    if not isinstance(header, dict):
        raise ValueError(f"{path} is no safetensors file: its header is no JSON object")
    return file[8 + length :], header


def entry_of(content: Tensor, name: str, entry: Any, path: str | Path) -> Tensor:
    """One tensor of a file."""
    try:
        kind, shape, (start, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        sane = all(type(number) is int and number >= 0 for number in (*shape, start, end))
    except (KeyError, TypeError, ValueError):
        sane = False
    if not sane:
        raise ValueError(f"{path}: the entry {name!r} is damaged: {entry!r:.80}")
    dtype = next((dtype for dtype, text in FILE_TYPES.items() if text == kind), None)
    if dtype is None:
        raise ValueError(f"{path}: {name!r} is of type {kind!r}, which the engine lacks")
    if end - start != prod(shape) * dtype.itemsize or end > content.numel():
        raise ValueError(
            f"{path}: {name!r}, {list(shape)} of {kind}, can't be the bytes {start} to {end} of {content.numel()}"
        )
    return content[start:end].bitcast(dtype).reshape(shape)


# ---- PyTorch ----------------------------------------------------------------------------------------------------


def torch_load(path: str | Path) -> Any:
    """What `torch.save` wrote (its zip format, of PyTorch 1.6 and later), with Tensors that stay in the file.

    No code in the file is run: names other than those of tensors and plain containers raise ValueError.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {info.filename: info for info in archive.infolist()}
            pickled = next((name for name in entries if name.rpartition("/")[2] == "data.pkl"), None)
            if pickled is None:
                raise ValueError(f"{path} is not of PyTorch: it has no data.pkl")
            text = archive.read(pickled)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is not in PyTorch's zip format: {error}") from None
    folder = pickled[: -len("data.pkl")]
    inside = {name[len(folder) :]: info for name, info in entries.items()}
    return TorchUnpickler(io.BytesIO(text), Tensor(Path(path)), inside).load()


class TorchUnpickler(pickle.Unpickler):
    """Makes tensors, dicts and lists, and refuses everything else."""

    def __init__(self, text: io.BytesIO, file: Tensor, entries: dict[str, zipfile.ZipInfo]):
        super().__init__(text)
        self.file, self.entries = file, entries

    def find_class(self, module: str, name: str) -> Any:
        """The few names that files of tensors need."""
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return rebuilt
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *_: tensor
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        raise ValueError(f"the file asks for {module}.{name}, which is no part of a tensor; nothing of it was run")

    def persistent_load(self, key: tuple[Any, ...]) -> Tensor:
        """The elements that a name in the file stands for."""
        _, dtype, name, _, count = key
        info = self.entries[f"data/{name}"]
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{info.filename} is compressed, which PyTorch does not do")
        lengths = self.file[info.header_offset + 26 : info.header_offset + 30].bitcast(dtypes.uint16).tolist()
        start = info.header_offset + 30 + sum(lengths)
        return self.file[start : start + count * dtype.itemsize].bitcast(dtype)


STORAGES: dict[str, DType] = {
    "FloatStorage": dtypes.float32, "DoubleStorage": dtypes.float64, "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16, "LongStorage": dtypes.int64, "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16, "CharStorage": dtypes.int8, "ByteStorage": dtypes.uint8, "BoolStorage": dtypes.bool,
}  # fmt: skip


def rebuilt(storage: Tensor, start: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> Tensor:
    """The tensor that lies in a storage with these strides."""
    if 0 in shape:
        return Tensor.zeros(*shape, dtype=storage.dtype)
    order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
    packed = tuple(shape[axis] for axis in order)
    if all(size == 1 or strides[a] == step for a, size, step in zip(order, packed, strides_for_shape(packed))):
        return storage[start : start + prod(shape)].reshape(packed).permute(inverse_permutation(order))
    values = storage.bitcast(dtypes.uint16 if storage.dtype is dtypes.bfloat16 else storage.dtype).numpy()[start:]
    steps = [stride * values.itemsize for stride in strides]
    return Tensor(np.lib.stride_tricks.as_strided(values, shape, steps)).bitcast(storage.dtype)
