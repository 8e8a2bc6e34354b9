"""What a user can set: names, defaults, ranges, and which of it may change while the node runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterTypeException
from rclpy.node import Node
from rclpy.parameter import Parameter

Type = Parameter.Type
TRANSPORTS = ("auto", "raw", "compressed")


class BadParameter(ValueError):
    """A parameter's value that cannot be used: which, and what to give instead."""


@dataclass(frozen=True)
class Spec:
    """One parameter. A default that is a Type means: not set, the model decides."""

    name: str
    default: Any
    description: str
    limits: tuple[float, float] | None = None
    dynamic: bool = False

    @property
    def is_double(self) -> bool:
        """Whether an integer given for it has to become a float."""
        return self.default is Type.DOUBLE or isinstance(self.default, float)

    def descriptor(self) -> ParameterDescriptor:
        """What `ros2 param describe` shows and rclpy enforces."""
        descriptor = ParameterDescriptor(description=self.description, read_only=not self.dynamic)
        if self.limits and self.is_double:
            low, high = self.limits
            descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
        elif self.limits:
            low, high = map(int, self.limits)
            descriptor.integer_range = [IntegerRange(from_value=low, to_value=high)]
        return descriptor


SPECS = (
    Spec("model_path", "", "The detector: an ONNX file; empty: the street detector that comes with the package."),
    Spec("card_path", "", "The model's card; empty: MODEL.yaml beside the model, if there is one."),
    Spec("label_path", "", "A file with one class name a line; empty: the card's names."),
    Spec("device", "", "Where the program runs, e.g. CPU; empty: the best one there is."),
    Spec("max_detections", 100, "The most objects reported for one image.", (1, 1000)),
    Spec("image_transport", "auto", "raw, compressed, or auto: what the camera publishes."),
    Spec("image_width", 0, "Compile for this width before any image comes; 0: ask the camera.", (0, 16384)),
    Spec("image_height", 0, "Compile for this height before any image comes; 0: ask the camera.", (0, 16384)),
    Spec("image_encoding", "bgr8", "The encoding that goes with image_width and image_height."),
    Spec("score_threshold", Type.DOUBLE, "Report objects from this score on.", (0.0, 1.0), dynamic=True),
    Spec("nms_threshold", Type.DOUBLE, "Overlap (IoU) from which a weaker box goes.", (0.0, 1.0), dynamic=True),
    Spec("classes", Type.STRING_ARRAY, "Report only these classes; empty: all.", dynamic=True),
    Spec("enable", True, "False: images are let pass.", dynamic=True),
    Spec("deadline_ms", 0.0, "Milliseconds from image to detections; 0: none.", (0.0, 60_000.0), dynamic=True),
)
DOUBLES = frozenset(spec.name for spec in SPECS if spec.is_double)


class Parameters:
    """The node's parameters, declared; read like attributes, None where not set."""

    def __init__(self, node: Node) -> None:
        self._node = node
        for spec in SPECS:
            _declare(node, spec)
        if hasattr(node, "add_pre_set_parameters_callback"):  # Humble has none: there a double must be given as one
            node.add_pre_set_parameters_callback(_integers_to_doubles)
        if self.image_transport not in TRANSPORTS:
            raise BadParameter(f"image_transport is {self.image_transport!r}; use one of {', '.join(TRANSPORTS)}")

    def __getattr__(self, name: str) -> Any:
        return self._node.get_parameter_or(name).value

    def set(self, name: str, value: Any) -> None:
        """Sets a parameter from inside, for instance to what the model's card says."""
        self._node.set_parameters([Parameter(name, value=value)])

    def on_change(self, apply: Callable[[dict[str, Any]], None]) -> None:
        """Calls `apply` with changed values before they take effect; its BadParameter refuses them."""

        def callback(parameters: list[Parameter]) -> SetParametersResult:
            try:
                apply({parameter.name: parameter.value for parameter in parameters})
            except BadParameter as error:
                return SetParametersResult(successful=False, reason=str(error))
            return SetParametersResult(successful=True)

        self._node.add_on_set_parameters_callback(callback)


def _declare(node: Node, spec: Spec) -> None:
    """Declares a parameter; takes an integer that was given for a double."""
    try:
        node.declare_parameter(spec.name, spec.default, spec.descriptor())
    except InvalidParameterTypeException:
        given = _given_value(node, spec.name)
        if not spec.is_double or type(given) is not int:
            raise
        node.declare_parameter(spec.name, float(given), spec.descriptor(), ignore_override=True)


def _given_value(node: Node, name: str) -> Any:
    """What the command line or a file says for a parameter that is not declared yet."""
    value = node.declare_parameter(name, None, ParameterDescriptor(dynamic_typing=True)).value
    node.undeclare_parameter(name)
    return value


def _integers_to_doubles(parameters: list[Parameter]) -> list[Parameter]:
    return [
        Parameter(parameter.name, Type.DOUBLE, float(parameter.value))
        if parameter.name in DOUBLES and parameter.type_ is Type.INTEGER
        else parameter
        for parameter in parameters
    ]
