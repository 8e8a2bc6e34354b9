"""Where frames come from: a picture, a folder of pictures, a video, or a bag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensor_engine.perception.errors import SourceError
from tensor_engine.perception.extras import require
from tensor_engine.perception.frame import COMPRESSED, Frame, file_encoding

BAG_SUFFIXES = (".mcap", ".db3", ".bag")
IMAGE = "sensor_msgs/msg/Image"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class SourcedFrame:
    """A frame, a name for it that is unique within its source, and the time of its record in nanoseconds."""

    frame: Frame
    name: str
    time_ns: int


@dataclass(frozen=True)
class Source:
    """Something with frames in it. `count` is their number, None if only reading on can tell."""

    kind: str  # picture, folder, video or bag
    path: Path
    count: int | None
    frames: Callable[[], Iterator[SourcedFrame]]
    topic: str = ""


def open_source(path: Path, topic: str | None = None) -> Source:
    """Find out what a path is, by its content. `topic` chooses the image topic of a bag.

    Raises SourceError if it is nothing with images in it.
    """
    if not path.exists():
        raise SourceError(f"{path} is not there")
    if is_bag(path):
        return open_bag(path, topic)
    if topic is not None:
        raise SourceError(f"{path} is no bag, so it has no topic {topic!r}")
    if path.is_dir():
        return open_folder(path)
    if path.stat().st_size == 0:
        raise SourceError(f"{path} is empty")
    return open_picture(path) if is_picture(path) else open_video(path)


# ---- pictures ------------------------------------------------------------------------------------------------------


def is_picture(path: Path) -> bool:
    """True if the file begins like a picture."""
    cv2 = require("cv2")
    with path.open("rb") as file:
        return file_encoding(file.read(8)) is not None or cv2.haveImageReader(str(path))


def open_picture(path: Path) -> Source:
    """One picture file."""
    return Source("picture", path, 1, lambda: iter([read_picture(path, path.stem)]))


def open_folder(path: Path) -> Source:
    """All pictures of a folder, by name."""
    pictures = sorted(file for file in path.iterdir() if file.is_file() and is_picture(file))
    if not pictures:
        raise SourceError(f"folder {path} holds neither a bag (metadata.yaml) nor a picture")
    stems = [picture.stem for picture in pictures]
    names = stems if len(set(stems)) == len(stems) else [picture.name for picture in pictures]
    return Source("folder", path, len(pictures), lambda: map(read_picture, pictures, names))


def read_picture(path: Path, name: str) -> SourcedFrame:
    """A picture file as a frame: JPEG and PNG as they are, other formats as bgr8."""
    data = path.read_bytes()
    if file_encoding(data) in COMPRESSED:
        return SourcedFrame(Frame.from_file(data), name, 0)
    cv2 = require("cv2")
    pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if pixels is None:
        raise SourceError(f"{path} cannot be decoded")
    return SourcedFrame(Frame.from_array(pixels, "bgr8"), name, 0)


# ---- videos --------------------------------------------------------------------------------------------------------


def open_video(path: Path) -> Source:
    """A video that OpenCV can read. Raises SourceError."""
    cv2 = require("cv2")
    capture = cv2.VideoCapture(str(path))
    opened, count = capture.isOpened(), int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
    capture.release()
    if not opened:
        raise SourceError(f"{path} is neither a picture, a video nor a bag")
    return Source("video", path, count if count > 0 else None, lambda: read_video(path))


def read_video(path: Path) -> Iterator[SourcedFrame]:
    """Every frame as bgr8; its stamp is its time in the video."""
    cv2 = require("cv2")
    capture = cv2.VideoCapture(str(path))
    rate = capture.get(cv2.CAP_PROP_FPS) or 25.0
    number = 0
    try:
        while True:
            there, pixels = capture.read()
            if not there:
                return
            stamp = round(number / rate * SECOND_NS)
            yield SourcedFrame(Frame.from_array(pixels, "bgr8", stamp), f"{number:06}", stamp)
            number += 1
    finally:
        capture.release()


# ---- bags ----------------------------------------------------------------------------------------------------------


def is_bag(path: Path) -> bool:
    """True for a bag's folder and for the file in it."""
    return (path / "metadata.yaml").is_file() if path.is_dir() else path.suffix in BAG_SUFFIXES


def open_bag(path: Path, topic: str | None) -> Source:
    """The image topic of a bag: the one named, else the first. Raises SourceError that lists the topics."""
    with opened_bag(path) as reader:
        found = {connection.topic: connection for connection in reader.connections}
        counts = {name: entry.msgcount for name, entry in reader.topics.items()}
    images = [name for name, c in found.items() if c.msgtype in (IMAGE, COMPRESSED_IMAGE)]
    listing = ", ".join(f"{name} ({c.msgtype})" for name, c in sorted(found.items())) or "none"
    if not images:
        raise SourceError(f"bag {path} has no image topic; its topics: {listing}")
    if topic is not None and topic not in images:
        raise SourceError(f"bag {path} has no image topic {topic!r}; its topics: {listing}")
    chosen = topic or images[0]
    return Source("bag", path, counts[chosen], lambda: read_bag(path, chosen), chosen)


def read_bag(path: Path, topic: str) -> Iterator[SourcedFrame]:
    """The images of one topic in the order of their records."""
    with opened_bag(path) as reader:
        connections = [c for c in reader.connections if c.topic == topic]
        for number, (connection, time_ns, data) in enumerate(reader.messages(connections=connections)):
            try:
                message = reader.deserialize(data, connection.msgtype)
            except Exception as error:  # the library raises whatever its parsing trips over
                raise SourceError(f"bag {path}: message {number} of {topic} is damaged: {error}") from error
            yield SourcedFrame(frame_of_message(message), f"{number:06}", time_ns)


@contextmanager
def opened_bag(path: Path) -> Iterator[Any]:
    """A rosbags reader. Raises SourceError for a damaged bag."""
    highlevel = require("rosbags.highlevel")
    typesys = require("rosbags.typesys")
    types = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    try:
        reader = highlevel.AnyReader([path], default_typestore=types)
        reader.open()
    except Exception as error:  # bad metadata, bad database, unknown storage: each has its own type
        raise SourceError(f"bag {path} cannot be read: {error}") from error
    try:
        yield reader
    finally:
        reader.close()


def frame_of_message(message: Any) -> Frame:
    """A deserialised sensor_msgs Image or CompressedImage as a frame, its header untouched."""
    stamp = message.header.stamp
    stamp_ns, frame_id = stamp.sec * SECOND_NS + stamp.nanosec, message.header.frame_id
    if hasattr(message, "format"):
        return Frame.from_file(message.data, "jpeg", stamp_ns, frame_id)
    return Frame(message.data, message.encoding, message.height, message.width, message.step, stamp_ns, frame_id)
