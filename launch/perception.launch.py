"""Starts perception_node on a camera.

ros2 launch tensor_engine perception.launch.py model:=detector.onnx image_topic:=/camera/image_raw
"""

from __future__ import annotations

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch.substitutions import EnvironmentVariable, LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

CONFIG = Path(__file__).resolve().parent.parent / "config"
FAST_DDS_2 = ("humble", "iron", "jazzy")  # distributions whose Fast DDS has the older variable
LOG_LEVELS = ["debug", "info", "warn", "error", "fatal"]

ARGUMENTS = [
    DeclareLaunchArgument("namespace", default_value="", description="The node's namespace."),
    DeclareLaunchArgument("image_topic", default_value="image_raw", description="The camera."),
    DeclareLaunchArgument("params_file", default_value=str(CONFIG / "perception.yaml"), description="Parameters."),
    DeclareLaunchArgument("log_level", default_value="info", choices=LOG_LEVELS, description="The node's log level."),
]

# Launch argument: the parameter that it sets when it is given, its type, its description.
PARAMETERS = {
    "model": ("model_path", str, "The detector, an ONNX file; else the street detector."),
    "card": ("card_path", str, "The model's card; else MODEL.yaml beside the model."),
    "labels": ("label_path", str, "A file with one class name a line; else the card's names."),
    "device": ("device", str, "Where the program runs; else the best device there is."),
    "image_transport": ("image_transport", str, "raw, compressed or auto."),
    "score_threshold": ("score_threshold", float, "Report objects from this score on; else the card's."),
    "nms_threshold": ("nms_threshold", float, "Overlap from which a weaker box goes; else the card's."),
    "deadline_ms": ("deadline_ms", float, "Milliseconds from image to detections; 0: none."),
    "use_sim_time": ("use_sim_time", bool, "Take the time from /clock."),
}


def generate_launch_description() -> LaunchDescription:
    """The arguments, the transport, and the node."""
    optional = [
        DeclareLaunchArgument(name, default_value="", description=description)
        for name, (_, _, description) in PARAMETERS.items()
    ]
    steps = [OpaqueFunction(function=image_transport), OpaqueFunction(function=perception_node)]
    return LaunchDescription([*ARGUMENTS, *optional, *steps])


def image_transport(context: LaunchContext) -> list[SetEnvironmentVariable]:
    """Gives Fast DDS room for images, unless the user has chosen a profile of their own."""
    distribution = EnvironmentVariable("ROS_DISTRO", default_value="").perform(context)
    product = "FASTRTPS" if distribution in FAST_DDS_2 else "FASTDDS"
    variable = f"{product}_DEFAULT_PROFILES_FILE"
    profile = str(CONFIG / "fastdds_images.xml")
    return [SetEnvironmentVariable(variable, EnvironmentVariable(variable, default_value=profile))]


def perception_node(context: LaunchContext) -> list[Node]:
    """The node, with the parameters that were given; the others stay those of params_file."""
    given = {
        parameter: ParameterValue(LaunchConfiguration(name), value_type=kind)
        for name, (parameter, kind, _) in PARAMETERS.items()
        if LaunchConfiguration(name).perform(context)
    }
    return [
        Node(
            package="tensor_engine",
            executable="perception_node",
            name="perception_node",
            namespace=LaunchConfiguration("namespace"),
            parameters=[LaunchConfiguration("params_file"), given],
            remappings=[("image_raw", LaunchConfiguration("image_topic"))],
            arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
            output="screen",
        )
    ]
