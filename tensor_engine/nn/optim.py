"""Optimisers: after `loss.backward()`, `step()` changes the parameters in place. All of them can be captured.

Sums that an optimiser keeps are in at least float32, whatever the type of the parameter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tensor_engine.dtype import sum_acc_dtype
from tensor_engine.helpers import dedup
from tensor_engine.storage import is_whole_buffer
from tensor_engine.tensor import Tensor


class Optimizer(ABC):
    """Updates `params`, of which those with `is_param` False are only computed along, as the means of a BatchNorm are.

    `lr`, the learning rate, is a tensor of one element in memory: assign to it to change it.
    """

    def __init__(self, params: Sequence[Tensor], lr: float):
        distinct = list({id(p): p for p in params}.values())
        self.params = [p for p in distinct if p.is_param and p.is_floating_point()]
        self.buffers = [p for p in distinct if not (p.is_param and p.is_floating_point())]
        if not self.params:
            raise ValueError("an optimiser needs at least one floating tensor whose is_param is True")
        own_memory(distinct)
        self.lr = Tensor([lr], self.device, is_param=False)
        self.state: list[Tensor] = [self.lr]

    @property
    def device(self) -> str:
        """Where the parameters are."""
        return self.params[0].device

    def zeros_like_params(self) -> list[Tensor]:
        """A sum for each parameter, kept between steps."""
        sums = [Tensor.zeros(p.shape, dtype=sum_acc_dtype(p.dtype), device=p.device) for p in self.params]
        return self.keep(sums)

    def keep(self, tensors: list[Tensor]) -> list[Tensor]:
        """Tensors in memory that `step` computes along."""
        own_memory(tensors)
        for tensor in tensors:
            tensor.is_param = False
        self.state += tensors
        return tensors

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for p in self.params:
            p.grad = None

    def step(self) -> None:
        """Change every parameter by its gradient. Raises RuntimeError outside of `Tensor.train()`, and ValueError for
        a parameter without a gradient."""
        scheduled = self.schedule_step()
        scheduled[0].realize(*scheduled[1:])

    def schedule_step(self) -> list[Tensor]:
        """Like `step`, but what it returns is yet to be computed: together with the loss, say."""
        if not Tensor.training:
            raise RuntimeError("optimisers step while training only: put the loop inside `with Tensor.train():`")
        without = [p.shape for p in self.params if p.grad is None]
        if without:
            raise ValueError(f"no gradient for parameters of shapes {without}: call backward() on a loss made of them")
        wide = [(p.detach().cast(sum_acc_dtype(p.dtype)), gradient_of(p)) for p in self.params]
        updates = self.updates([p for p, _ in wide], [g for _, g in wide])
        for p, (value, _), update in zip(self.params, wide, updates):
            p.assign((value - update.cast(value.dtype)).cast(p.dtype))
        return [*self.state, *self.params, *self.buffers]

    @abstractmethod
    def updates(self, params: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
        """What is to be subtracted from each parameter."""


def gradient_of(p: Tensor) -> Tensor:
    """A parameter's gradient in the type of sums."""
    assert p.grad is not None
    return p.grad.cast(sum_acc_dtype(p.dtype))


def own_memory(tensors: Sequence[Tensor]) -> None:
    """Bring tensors into memory of their own, which a step then changes."""
    loose = [t for t in tensors if not is_whole_buffer(t.uop)]
    for tensor in loose:
        tensor.replace(tensor.contiguous())
    if loose:
        loose[0].realize(*loose[1:])


class OptimizerGroup(Optimizer):
    """Several optimisers as one: other parameters, other rules."""

    def __init__(self, *optimizers: Optimizer):
        self.optimizers = optimizers
        self.params = [p for o in optimizers for p in o.params]
        self.buffers = dedup([b for o in optimizers for b in o.buffers])

    def schedule_step(self) -> list[Tensor]:
        """The steps of all."""
        return [tensor for o in self.optimizers for tensor in o.schedule_step()]

    def updates(self, params: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
        """Each optimiser has its own."""
        raise NotImplementedError("a group's optimisers update their own parameters")


# ---- along the gradient -----------------------------------------------------------------------------------------


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (Sutskever et al., "On the importance of initialization and momentum
    in deep learning", 2013; `nesterov` looks ahead). `weight_decay` adds that much of the parameter to its gradient.

    `classic`: the learning rate is multiplied in before the momentum, so that changing it doesn't change the past.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        classic: bool = False,
    ):
        super().__init__(params, lr)
        self.momentum, self.weight_decay = momentum, weight_decay
        self.nesterov, self.classic = nesterov, classic
        self.velocities = self.zeros_like_params() if momentum else []

    def updates(self, params: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
        """Learning rate times velocity."""
        return [self.update(number, p, g) for number, (p, g) in enumerate(zip(params, grads))]

    def update(self, number: int, p: Tensor, g: Tensor) -> Tensor:
        """One parameter's."""
        g = self.direction(p, g)
        if self.classic:
            g = g * self.lr.cast(g.dtype)
        if self.momentum:
            g = self.with_momentum(self.velocities[number], g)
        g = self.shaped(g)
        return g if self.classic else g * self.lr.cast(g.dtype)

    def direction(self, p: Tensor, g: Tensor) -> Tensor:
        """The gradient with the decay's."""
        return g + p * self.weight_decay if self.weight_decay else g

    def with_momentum(self, velocity: Tensor, g: Tensor) -> Tensor:
        """Where it goes on to."""
        velocity.assign(velocity * self.momentum + g)
        return g + velocity * self.momentum if self.nesterov else velocity

    def shaped(self, g: Tensor) -> Tensor:
        """What is made of the direction at last."""
        return g


class LARS(SGD):
    """SGD whose steps are in proportion to each parameter's size (You et al., "Large batch training of convolutional
    networks", 2017). `tcoef` is the trust coefficient; 0 is plain SGD."""

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        nesterov: bool = False,
        classic: bool = True,
        tcoef: float = 0.001,
    ):
        super().__init__(params, lr, momentum, weight_decay, nesterov, classic)
        self.tcoef = tcoef

    def direction(self, p: Tensor, g: Tensor) -> Tensor:
        """The gradient, scaled to a share of the parameter's size."""
        if not self.tcoef:
            return super().direction(p, g)
        size, slope = norm(p), norm(g)
        ratio = size * self.tcoef / (slope + size * self.weight_decay)
        trust = ((size > 0) & (slope > 0)).where(ratio, 1.0)
        return super().direction(p, g) * trust


class Muon(SGD):
    """SGD whose step for a matrix is made nearly orthogonal (Jordan et al., "Muon: an optimizer for hidden layers in
    neural networks", 2024). Parameters with one axis step along their velocity."""

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        ns_steps: int = 5,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        nesterov: bool = True,
    ):
        super().__init__(params, lr, momentum, 0.0, nesterov)
        self.decay, self.ns_steps, self.ns_coefficients = weight_decay, ns_steps, ns_coefficients

    def updates(self, params: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
        """The decay is apart from the gradient's way."""
        steps = super().updates(params, grads)
        if not self.decay:
            return steps
        return [step + p * self.decay * self.lr.cast(p.dtype) for step, p in zip(steps, params)]

    def shaped(self, g: Tensor) -> Tensor:
        """Orthogonal rows, or columns."""
        if g.ndim < 2:
            return g
        return g.flatten(1).newton_schulz(self.ns_steps, self.ns_coefficients).reshape(g.shape)


def norm(x: Tensor) -> Tensor:
    """The Euclidean length."""
    return x.square().sum().sqrt()


# ---- along the gradient, over its usual size --------------------------------------------------------------------


class LAMB(Optimizer):
    """Steps over the root of the mean square of the gradients, in proportion to each parameter's size (You et al.,
    "Large batch optimization for deep learning: training BERT in 76 minutes", 2019).

    With `adam` regardless of its size: that is Adam, with decay apart from the gradient if there is one.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        adam: bool = False,
    ):
        super().__init__(params, lr)
        self.b1, self.b2, self.eps, self.weight_decay, self.adam = b1, b2, eps, weight_decay, adam
        self.means, self.squares = self.zeros_like_params(), self.zeros_like_params()
        # the same means of ones: what a mean that starts from 0 must be divided by
        self.mean_weight, self.square_weight = self.keep([Tensor.zeros(1, device=self.device) for _ in range(2)])

    def updates(self, params: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
        """Learning rate times mean over root of mean square."""
        average(self.mean_weight, 1.0, self.b1)
        average(self.square_weight, 1.0, self.b2)
        return [self.update(number, p, g) for number, (p, g) in enumerate(zip(params, grads))]

    def update(self, number: int, p: Tensor, g: Tensor) -> Tensor:
        """One parameter's."""
        mean, square = self.means[number], self.squares[number]
        average(mean, g, self.b1)
        average(square, g.square(), self.b2)
        root = (square / self.square_weight.cast(g.dtype)).sqrt() + self.eps
        step = mean / self.mean_weight.cast(g.dtype) / root
        if self.weight_decay:
            step = step + p * self.weight_decay
        return (step if self.adam else step * trust_ratio(p, step)) * self.lr.cast(g.dtype)


def average(mean: Tensor, value: Tensor | float, weight: float) -> None:
    """Bring a running mean up to date, in place."""
    mean.assign(mean * weight + value * (1 - weight))


def trust_ratio(p: Tensor, step: Tensor) -> Tensor:
    """The parameter's size over the step's; 1 if either is 0."""
    size, length = norm(p), norm(step)
    return ((size > 0) & (length > 0)).where(size / length, 1.0)


class AdamW(LAMB):
    """Loshchilov and Hutter, "Decoupled weight decay regularization", 2017."""

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ):
        super().__init__(params, lr, b1, b2, eps, weight_decay, adam=True)


class Adam(AdamW):
    """Kingma and Ba, "Adam: a method for stochastic optimization", 2014."""

    def __init__(
        self, params: Sequence[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
    ):
        super().__init__(params, lr, b1, b2, eps, weight_decay=0.0)
