"""The tensors of a model by name, and files of them (https://huggingface.co/docs/safetensors)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tensor_engine.device import numpy_dtype
from tensor_engine.dtype import DType, dtypes
from tensor_engine.tensor import Tensor

# the names that the format has for our types
FILE_TYPES: dict[DType, str] = {
    dtypes.bool: "BOOL", dtypes.int8: "I8", dtypes.int16: "I16", dtypes.int32: "I32", dtypes.int64: "I64",
    dtypes.uint8: "U8", dtypes.uint16: "U16", dtypes.uint32: "U32", dtypes.uint64: "U64",
    dtypes.float16: "F16", dtypes.bfloat16: "BF16", dtypes.float32: "F32", dtypes.float64: "F64",
}  # fmt: skip


# ---- models -----------------------------------------------------------------------------------------------------


def get_state_dict(model: Any, prefix: str = "") -> dict[str, Tensor]:
    """All tensors in an object's attributes, dicts, lists and tuples, named by the way to them: "layers.0.weight"."""
    if isinstance(model, Tensor):
        return {prefix.rstrip("."): model}
    state: dict[str, Tensor] = {}
    for name, part in named_parts(model):
        state.update(get_state_dict(part, f"{prefix}{name}."))
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


def get_parameters(model: Any) -> list[Tensor]:
    """All tensors of a model. Those whose `is_param` is False are no optimiser's to change."""
    return list(get_state_dict(model).values())


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


# ---- files ------------------------------------------------------------------------------------------------------


def safe_save(tensors: Mapping[str, Tensor], path: str | Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a safetensors file."""
    from safetensors import TensorSpec, serialize_file

    arrays = {name: stored_array(tensor) for name, tensor in tensors.items()}
    entries = {}
    for name, tensor in tensors.items():
        dtype, shape, array = tensor.dtype.name, list(tensor.shape), arrays[name]
        entries[name] = TensorSpec(dtype=dtype, shape=shape, data_ptr=array.ctypes.data, data_len=array.nbytes)
    serialize_file(entries, str(path), metadata)


def stored_array(tensor: Tensor) -> np.ndarray:
    """The elements as they lie in a file: lowest byte first, bfloat16 as its bits."""
    array = (tensor.bitcast(dtypes.uint16) if tensor.dtype is dtypes.bfloat16 else tensor).numpy()
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def safe_load(path: str | Path, device: str | None = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Raises ValueError for types that the engine lacks."""
    from safetensors import deserialize

    entries = deserialize(Path(path).read_bytes())
    return {name: tensor_of(name, entry, device) for name, entry in entries}


def tensor_of(name: str, entry: dict[str, Any], device: str | None) -> Tensor:
    """One entry of a file."""
    dtype = next((dtype for dtype, text in FILE_TYPES.items() if text == entry["dtype"]), None)
    if dtype is None:
        raise ValueError(f"{name} is of type {entry['dtype']}, which the engine lacks")
    stored = numpy_dtype(dtype)
    array = np.frombuffer(entry["data"], stored.newbyteorder("<")).astype(stored).reshape(entry["shape"])
    tensor = Tensor(array, device)
    return tensor.bitcast(dtype) if dtype is dtypes.bfloat16 else tensor
