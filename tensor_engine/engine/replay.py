"""Captured launches, run again in as few native calls as possible, with other memory in some places."""
from __future__ import annotations

from collections.abc import Callable

from tensor_engine.device import Buffer, Device, FrameProgram, KernelCall, Parameter
from tensor_engine.engine import realize
from tensor_engine.engine.realize import Launch
from tensor_engine.helpers import DEBUG, GlobalCounters
from tensor_engine.uop.size import Values


class Replay:
    """Launches in order. `places` is the memory in the launches that other memory takes the place of, and `values`
    are those of the variables, in place of which others may come, too."""

    def __init__(self, launches: list[Launch], places: list[Buffer], values: Values):
        self.launches, self.places, self.values = launches, places, values
        self.variables = {name: Parameter(number) for number, name in enumerate(values, len(places))}
        self.steps = [(self._link(run), run) for run in runs_of(launches)]
        self.linked_kernels = sum(len(run) for program, run in self.steps if program is not None)

    def place(self, number: int, buffer: Buffer) -> None:
        """Put memory into a place."""
        for program, launches in self.steps:
            if program is not None and device_of(launches) == buffer.device:
                program.set(number, buffer.opaque)

    def bind(self, values: Values) -> None:
        """Give the variables other values."""
        self.values = values
        for program, _ in self.steps:
            for name, parameter in self.variables.items():
                if program is not None:
                    program.set(parameter.number, values[name])

    def run(self, memory: Callable[[], list[Buffer]]) -> None:
        """Launch everything; one by one inside another capture, which has to see it. `memory()`: what is in the places
        now."""
        if realize.observers.entries:
            return self._run_each(self.launches, memory())
        for program, launches in self.steps:
            if program is None:
                self._run_each(launches, memory())
            else:
                program()
        GlobalCounters.kernel_count += self.linked_kernels

    def _link(self, launches: list[Launch]) -> FrameProgram | None:
        """Launches that can be one native call, unless DEBUG wants to see every kernel."""
        if DEBUG >= 1 or launches[0].kernel is None:
            return None
        device = device_of(launches)
        parameters = [buffer.opaque if buffer.device == device else 0 for buffer in self.places]
        parameters += self.values.values()
        return Device[device].link([self._call(launch) for launch in launches], parameters)

    def _call(self, launch: Launch) -> KernelCall:
        assert launch.kernel is not None, "a copy is no kernel"
        numbers = {id(buffer): Parameter(number) for number, buffer in enumerate(self.places)}
        arguments = tuple(numbers.get(id(buffer), buffer.opaque) for buffer in launch.buffers)
        variables: dict[str, int | Parameter] = {**self.variables, **launch.constants}
        return KernelCall(launch.kernel.program, arguments, tuple(variables[v] for v in launch.kernel.variables))

    def _run_each(self, launches: list[Launch], memory: list[Buffer]) -> None:
        now = {id(place): buffer for place, buffer in zip(self.places, memory)}
        for launch in launches:
            buffers = tuple(now.get(id(buffer), buffer) for buffer in launch.buffers)
            names = launch.kernel.variables if launch.kernel is not None else ()
            values = {**self.values, **launch.constants}
            realize.run_launch(launch._replace(buffers=buffers, vals=tuple(values[name] for name in names)))


def runs_of(launches: list[Launch]) -> list[list[Launch]]:
    """Consecutive launches that can be linked: kernels on one device. Copies go together, too."""
    runs: list[list[Launch]] = []
    for launch in launches:
        if runs and kind_of(runs[-1][-1]) == kind_of(launch):
            runs[-1].append(launch)
        else:
            runs.append([launch])
    return runs


def kind_of(launch: Launch) -> str:
    """Launches of one kind can be linked."""
    return "copy" if launch.kernel is None else launch.buffers[0].device


def device_of(launches: list[Launch]) -> str:
    """The device of kernels that can be linked."""
    return launches[0].buffers[0].device
