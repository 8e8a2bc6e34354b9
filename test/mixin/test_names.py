"""What a script written for tinygrad may call is there, with the same arguments; what is not, and why not.

`tinygrad_names.txt` lists the public names of its Tensor (0.14) and their arguments; a lone * stands for any number of
arguments, those after it are given by name.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from tensor_engine import Tensor
from tensor_engine.uop.uop import UOp

LINES = Path(__file__).with_name("tinygrad_names.txt").read_text().splitlines()
NAMES = dict(line.partition("(")[::2] for line in LINES)

LEFT_OUT = {
    "a tensor on several devices": "shard shard_ shard_like",
    "code that fetches from the network": "from_url",
    "reads memory at a number: np.frombuffer and Tensor do the same, safely": "from_blob",
    "the insides of its scheduler and kernels": """
        as_param call callify custom_kernel linear_with_vars schedule_linear invalids ufix random_bits""",
    "a memory layout of one chip; conv2d and dot give the same values": "image_conv2d image_dot",
    "needs a video decoder of one chip": "decode_hevc_frame",
    "upper bounds of sizes that are variables": "max_shape max_numel",
    "checksums are hashlib's": "hash keccak",
}
# arguments that change how its engine works and not what comes out
ARGUMENTS_LEFT_OUT = {"buffer", "contiguous", "do_update_stats"}
CALLED_BY_POSITION = {"alu", "const", "const_like"}
# selu's constants have more digits here
OTHER_DEFAULT = {"selu": {"alpha", "gamma"}, "randint": {"dtype"}, "randperm": {"dtype"}, "cumprod": {"axis"}}
# what needs memory, values or chance
NOT_OF_NODES = """
    empty empty_like rand rand_like randn randn_like randint randperm uniform normal scaled_uniform glorot_uniform
    kaiming_uniform kaiming_normal multinomial dropout manual_seed backward grad is_param is_param_ numpy data tolist
    assign replace to to_ clone sequential size"""
ANY_NUMBER, ANY_NAME = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def left_out() -> set[str]:
    return set(" ".join(LEFT_OUT.values()).split())


@pytest.mark.parametrize("name", sorted(set(NAMES) - left_out()))
def test_is_there(name):
    assert hasattr(Tensor, name)
    assert hasattr(UOp, name) or name in NOT_OF_NODES.split()


def test_reasons_are_not_stale():
    assert [name for name in sorted(left_out()) if hasattr(Tensor, name) or name not in NAMES] == []


@pytest.mark.parametrize("name", sorted(set(NAMES) - left_out() - CALLED_BY_POSITION))
def test_arguments(name):
    if not callable(getattr(Tensor, name)):
        return
    parameters = inspect.signature(getattr(Tensor, name)).parameters.values()
    ours = {p.name: p.default for p in parameters}
    takes_any_number, takes_any_name = (
        any(p.kind is kind for p in parameters) for kind in (ANY_NUMBER, ANY_NAME)
    )
    for argument, default in arguments_of(NAMES[name]).items():
        if argument in ours:
            assert repr(default) == repr(ours[argument]) or argument in OTHER_DEFAULT.get(name, ()), argument
        elif argument not in ARGUMENTS_LEFT_OUT:
            given_by_place = takes_any_number and default is inspect.Parameter.empty
            assert given_by_place or takes_any_name, f"{name} has no {argument}"


def arguments_of(text: str) -> dict[str, object]:
    """Names and defaults, `inspect.Parameter.empty` where there is none, of what stands between the parentheses."""
    text = text.rstrip(")").replace("*, ", "").removesuffix("*")
    parsed = ast.parse(f"lambda {text.rstrip(', ')}: 0", mode="eval").body.args
    missing = [inspect.Parameter.empty] * (len(parsed.args) - len(parsed.defaults))
    defaults = missing + [ast.literal_eval(default) for default in parsed.defaults]
    return dict(zip([argument.arg for argument in parsed.args], defaults))
