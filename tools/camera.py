"""A camera that plays a recording: a bag or a video, at its own rate, on a ROS topic.

python tools/camera.py street.mcap --topic /camera/image_raw --transport raw --loop
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import cv2
import rclpy
from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, Image

from ros_node.messages import image_message
from ros_node.process import OK, USER_MISTAKE, ask_to_end
from tensor_engine.perception.errors import SourceError
from tensor_engine.perception.frame import Frame
from tensor_engine.perception.sources import SECOND_NS, Source, SourcedFrame, open_source

JPEG_QUALITY = 95


class Camera(Node):
    """Publishes images: raw ones on the topic, compressed ones on TOPIC/compressed. Begins with the first image."""

    def __init__(self, topic: str, transport: str, with_clock: bool) -> None:
        super().__init__("camera")
        self._topic, self._transport = topic, transport
        self._images: Any = None
        self._clock_publisher = self.create_publisher(Clock, "/clock", 10) if with_clock else None

    def advertise(self, frame: Frame) -> None:
        """Makes the topic that frames like this one go to."""
        compressed = in_transport(frame, self._transport).is_compressed
        if compressed:
            self._images = self.create_publisher(CompressedImage, f"{self._topic}/compressed", 10)
        else:
            self._images = self.create_publisher(Image, self._topic, 10)

    def wait_for_subscriber(self, seconds: float, ending: Event) -> None:
        """Waits until somebody listens, or for so long."""
        end = time.monotonic() + seconds
        while not self._images.get_subscription_count() and time.monotonic() < end:
            if ending.wait(0.05):
                return

    def show(self, sourced: SourcedFrame) -> None:
        """Publishes one image, after the time of its record where a clock is asked for."""
        if self._clock_publisher:
            seconds, rest = divmod(sourced.time_ns, SECOND_NS)
            self._clock_publisher.publish(Clock(clock=Time(sec=seconds, nanosec=rest)))
        self._images.publish(image_message(in_transport(sourced.frame, self._transport)))


def in_transport(frame: Frame, transport: str) -> Frame:
    """The frame raw, or as JPEG, or as it was recorded."""
    if transport == "raw":
        return frame.decode()
    if transport == "recorded" or frame.is_compressed:
        return frame
    _, file = cv2.imencode(".jpg", frame.pixels(), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return Frame.from_file(file, stamp_ns=frame.stamp_ns, frame_id=frame.frame_id)


def paced(source: Source, rate: float, ending: Event) -> Iterator[SourcedFrame]:
    """The frames, each when it is due; `rate` is how much faster than recorded."""
    begun, first = time.monotonic(), None
    for sourced in source.frames():
        first = sourced.time_ns if first is None else first
        due = begun + (sourced.time_ns - first) / SECOND_NS / rate
        if ending.wait(max(0.0, due - time.monotonic())):
            return
        yield sourced


def play(camera: Camera, source: Source, arguments: argparse.Namespace, ending: Event) -> int:
    """Plays the recording once, or again and again; how many images were shown."""
    camera.advertise(next(iter(source.frames())).frame)
    camera.wait_for_subscriber(arguments.wait, ending)
    shown = 0
    while not ending.is_set():
        for sourced in paced(source, arguments.rate, ending):
            camera.show(sourced)
            shown += 1
        if not arguments.loop:
            break
    return shown


def parse(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path, help="a bag, a video, a picture or a folder of pictures")
    parser.add_argument("--topic", default="/camera/image_raw", help="the topic; compressed images: TOPIC/compressed")
    parser.add_argument("--transport", choices=["recorded", "raw", "compressed"], default="recorded")
    parser.add_argument("--rate", type=float, default=1.0, help="how much faster than recorded")
    parser.add_argument("--loop", action="store_true", help="again and again, until interrupted")
    parser.add_argument("--clock", action="store_true", help="publish /clock, for nodes with use_sim_time")
    parser.add_argument("--wait", type=float, default=0.0, metavar="SECONDS", help="for a subscriber, before it begins")
    return parser.parse_args(words)


def main() -> int:
    """Plays until the end or a signal; the exit code."""
    ending = ask_to_end()
    rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    arguments = parse(rclpy.utilities.remove_ros_args(sys.argv)[1:])
    camera = Camera(arguments.topic, arguments.transport, arguments.clock)
    try:
        shown = play(camera, open_source(arguments.recording), arguments, ending)
    except SourceError as error:
        camera.get_logger().fatal(str(error))
        return USER_MISTAKE
    camera.get_logger().info(f"showed {shown} images")
    rclpy.shutdown()
    return OK


if __name__ == "__main__":
    sys.exit(main())
