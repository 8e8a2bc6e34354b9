"""Recurrent layers, unrolled in time. Weights: [directions, gates * hidden, ...]; sequences: [steps, batch, inputs]."""

from collections.abc import Callable
from typing import Any

from tensor_engine.nn.onnx.error import OnnxError
from tensor_engine.nn.onnx.ops.table import operator
from tensor_engine.tensor import Tensor

Activation = Callable[[Tensor], Tensor]
State = tuple[Tensor, ...]  # hidden, and for an LSTM the cell
Step = Callable[[Tensor, State], State]  # from the input at a step and the state to the next state

ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "affine": lambda x, alpha=1.0, beta=0.0: x * alpha + beta,
    "elu": lambda x, alpha=1.0: x.elu(alpha),
    "hardsigmoid": lambda x, alpha=0.2, beta=0.5: x.hardsigmoid(alpha, beta),
    "leakyrelu": lambda x, alpha=0.01: x.leaky_relu(alpha),
    "relu": lambda x: x.relu(),
    "scaledtanh": lambda x, alpha=1.0, beta=1.0: (x * beta).tanh() * alpha,
    "sigmoid": lambda x: x.sigmoid(),
    "softplus": lambda x: x.softplus(),
    "softsign": lambda x: x.softsign(),
    "tanh": lambda x: x.tanh(),
    "thresholdedrelu": lambda x, alpha=1.0: (x > alpha).where(x, 0),
}
PARAMETERS = {
    "affine": 2,
    "elu": 1,
    "hardsigmoid": 2,
    "leakyrelu": 1,
    "scaledtanh": 2,
    "thresholdedrelu": 1,
}


def _activations(
    names: list[str], alphas: list[float] | None, betas: list[float] | None, clip: float | None
) -> list[Activation]:
    """One function for each name; alphas and betas are taken in order by those that need them."""
    alpha, beta = iter(alphas or []), iter(betas or [])
    return [_activation(name.lower(), alpha, beta, clip) for name in names]


def _activation(name: str, alphas: Any, betas: Any, clip: float | None) -> Activation:
    if name not in ACTIVATIONS:
        raise OnnxError(f"there is no activation '{name}'")
    count = PARAMETERS.get(name, 0)
    given = {
        "alpha": next(alphas, None) if count else None,
        "beta": next(betas, None) if count > 1 else None,
    }
    parameters = {key: value for key, value in given.items() if value is not None}

    def activate(x: Tensor) -> Tensor:
        return ACTIVATIONS[name](x if clip is None else x.clip(-clip, clip), **parameters)

    return activate


def _run(
    x: Tensor, state: State, step: Step, lengths: Tensor | None, backward: bool
) -> tuple[list[Tensor], State]:
    """The hidden state after each step, in the order of time, and the last state.

    Beyond a sequence's length the outputs are 0 and the state stays.
    """
    steps = list(range(x.shape[0]))
    outputs: list[Tensor] = []
    for t in reversed(steps) if backward else steps:
        after = step(x[t], state)
        if lengths is None:
            state = after
            outputs.append(state[0])
            continue
        is_running = (lengths > t).reshape(-1, 1)
        state = tuple(is_running.where(new, old) for new, old in zip(after, state))
        outputs.append(is_running.where(after[0], 0))
    return (outputs[::-1] if backward else outputs), state


def _recur(
    x: Tensor,
    initial: list[Tensor | None],
    make_step: Callable[[int], Step],
    lengths: Tensor | None,
    direction: str,
    hidden: int,
    layout: int,
) -> tuple[Tensor, ...]:
    """Every direction in turn: all hidden states [steps, directions, batch, hidden], then the last states."""
    x = x.transpose(0, 1) if layout else x
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    zeros = Tensor.zeros(x.shape[1], hidden, dtype=x.dtype, device=x.device)
    histories, finals = [], []
    for number, backward in enumerate(backwards):
        state = tuple(
            zeros if s is None else (s.transpose(0, 1) if layout else s)[number] for s in initial
        )
        outputs, final = _run(x, state, make_step(number), lengths, backward)
        histories.append(outputs[0].stack(*outputs[1:]))
        finals.append(final)
    history = histories[0].stack(*histories[1:], dim=1)
    last = [column[0].stack(*column[1:]) for column in zip(*finals)]
    if layout:
        return (history.permute(2, 0, 1, 3), *(state.transpose(0, 1) for state in last))
    return (history, *last)


def _biases(
    bias: Tensor | None, number: int, gates: int, hidden: int, like: Tensor
) -> tuple[Tensor, Tensor]:
    """The gates' biases for the input and for the hidden state."""
    if bias is None:
        zeros = Tensor.zeros(gates * hidden, dtype=like.dtype, device=like.device)
        return zeros, zeros
    return bias[number, : gates * hidden], bias[number, gates * hidden :]


@operator("RNN")
def rnn(
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    initial: Tensor | None = None,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """Elman's: h' = f(x W + h R + b)."""
    names = activations or ["Tanh"] * weight.shape[0]
    functions = _activations(names, activation_alpha, activation_beta, clip)
    hidden = recurrence.shape[-1]

    def make_step(number: int) -> Step:
        w, r = weight[number].transpose(0, 1), recurrence[number].transpose(0, 1)
        bias_x, bias_h = _biases(bias, number, 1, hidden, x)

        def step(x_t: Tensor, state: State) -> State:
            return (functions[number](x_t @ w + bias_x + state[0] @ r + bias_h),)

        return step

    return _recur(x, [initial], make_step, lengths, direction, hidden, layout)


@operator("GRU")
def gru(
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    initial: Tensor | None = None,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Tensor, ...]:
    """Cho et al., "Learning Phrase Representations using RNN Encoder–Decoder", 2014. Gates: update, reset, hidden."""
    names = activations or ["Sigmoid", "Tanh"] * weight.shape[0]
    functions = _activations(names, activation_alpha, activation_beta, clip)
    hidden = recurrence.shape[-1]

    def make_step(number: int) -> Step:
        gate, candidate = functions[2 * number : 2 * number + 2]
        w, r = weight[number].transpose(0, 1), recurrence[number].transpose(0, 1)
        bias_x, bias_h = _biases(bias, number, 3, hidden, x)

        def step(x_t: Tensor, state: State) -> State:
            (h,) = state
            from_x = (x_t @ w + bias_x).split(hidden, dim=1)
            from_h = h @ r + bias_h
            update = gate(from_x[0] + from_h[:, :hidden])
            reset = gate(from_x[1] + from_h[:, hidden : 2 * hidden])
            if linear_before_reset:
                new = candidate(from_x[2] + reset * from_h[:, 2 * hidden :])
            else:
                new = candidate(from_x[2] + (reset * h) @ r[:, 2 * hidden :] + bias_h[2 * hidden :])
            return ((1 - update) * new + update * h,)

        return step

    return _recur(x, [initial], make_step, lengths, direction, hidden, layout)


@operator("LSTM")
def lstm(
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    initial: Tensor | None = None,
    initial_cell: Tensor | None = None,
    peepholes: Tensor | None = None,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997. Gates: input, output, forget, cell.

    `peepholes` let the gates see the cell (weights for input, output and forget); `input_forget` couples two gates.
    """
    names = activations or ["Sigmoid", "Tanh", "Tanh"] * weight.shape[0]
    functions = _activations(names, activation_alpha, activation_beta, clip)
    hidden = recurrence.shape[-1]

    def make_step(number: int) -> Step:
        gate, candidate, output = functions[3 * number : 3 * number + 3]
        w, r = weight[number].transpose(0, 1), recurrence[number].transpose(0, 1)
        bias_x, bias_h = _biases(bias, number, 4, hidden, x)
        peep = _peepholes(peepholes, number, hidden)

        def step(x_t: Tensor, state: State) -> State:
            h, cell = state
            gates = x_t @ w + bias_x + h @ r + bias_h
            from_input, from_output, from_forget, from_cell = gates.split(hidden, dim=1)
            take_in = gate(from_input + peep[0] * cell)
            keep = 1 - take_in if input_forget else gate(from_forget + peep[2] * cell)
            new_cell = keep * cell + take_in * candidate(from_cell)
            return gate(from_output + peep[1] * new_cell) * output(new_cell), new_cell

        return step

    return _recur(x, [initial, initial_cell], make_step, lengths, direction, hidden, layout)


def _peepholes(peepholes: Tensor | None, number: int, hidden: int) -> list[Any]:
    return [0, 0, 0] if peepholes is None else list(peepholes[number].split(hidden))
