"""Variables: one capture for every value that a number takes."""
from tinygrad import Tensor, TinyJit, Variable

step = Variable("step", 1, 10)


@TinyJit
def scaled(x, factor):
    return (x * factor).sum().realize()


ones = Tensor.ones(5).contiguous().realize()
for factor in range(1, 6):
    assert scaled(ones, step.bind(factor)).item() == 5 * factor

print("variables", scaled(ones, step.bind(7)).item())
