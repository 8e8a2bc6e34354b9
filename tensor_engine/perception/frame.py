"""One image as it came in: its bytes, how they are laid out, when and where it was taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensor_engine.perception.extras import require

Bytes = memoryview | np.ndarray | bytes

# Where red, green and blue lie within a pixel. Grey feeds all three.
CHANNELS = {
    "rgb8": (0, 1, 2),
    "bgr8": (2, 1, 0),
    "rgba8": (0, 1, 2),
    "bgra8": (2, 1, 0),
    "mono8": (0, 0, 0),
}
PIXEL_BYTES = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}
COMPRESSED = ("jpeg", "png")
MAX_SIDE = 16384  # pixels; a header that claims more is a broken header

JPEG_START, JPEG_SCAN, JPEG_END = b"\xff\xd8", 0xDA, b"\xff\xd9"
PNG_START, PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"


class BadImage(ValueError):
    """An image that cannot be used.

    `reason` is one of empty, truncated, step, encoding, size, undecodable; the message is for
    people.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Frame:
    """One image, nothing converted.

    `data` holds uint8: at least step * height bytes of a raw image, or the whole file of a
    compressed one. `encoding` is rgb8, bgr8, rgba8, bgra8 or mono8, or else jpeg or png, and then
    height, width and step are 0. `step` is the number of bytes from one row to the next. `stamp_ns`
    counts nanoseconds.
    """

    data: Bytes
    encoding: str
    height: int
    width: int
    step: int
    stamp_ns: int = 0
    frame_id: str = ""

    @staticmethod
    def from_array(image: np.ndarray, encoding: str, stamp_ns: int = 0, frame_id: str = "") -> Frame:
        """A frame around a uint8 array [height, width, channels] or [height, width]; copies only to close gaps."""
        rows = np.ascontiguousarray(image)
        height, width = rows.shape[:2]
        step = width * PIXEL_BYTES.get(encoding, rows.itemsize)
        return Frame(rows, encoding, height, width, step, stamp_ns, frame_id)

    @staticmethod
    def from_file(data: Bytes, claimed: str = "jpeg", stamp_ns: int = 0, frame_id: str = "") -> Frame:
        """A frame around a picture file. Its first bytes tell the encoding, and `claimed` only if they don't."""
        return Frame(data, file_encoding(data) or claimed, 0, 0, 0, stamp_ns, frame_id)

    @property
    def is_compressed(self) -> bool:
        return self.encoding in COMPRESSED

    @property
    def octets(self) -> np.ndarray:
        """All bytes as uint8 [n]: a view, no copy, unless an array with gaps was given."""
        return as_bytes(self.data)

    def check(self) -> None:
        """Raise BadImage, in a sentence for people, if the layout is impossible. Looks at no pixel."""
        if self.is_compressed:
            check_file(self.octets)
        elif self.encoding in PIXEL_BYTES:
            check_layout(self.height, self.width, self.step, self.encoding)
            check_amount(self)
        else:
            known = ", ".join([*PIXEL_BYTES, *COMPRESSED])
            raise BadImage("encoding", f"encoding {self.encoding!r} is not supported; use one of {known}")

    def decode(self) -> Frame:
        """This frame if it is raw, else the picture as bgr8 in its own size.

        Raises BadImage if the file is damaged.
        """
        if not self.is_compressed:
            return self
        pixels = decode_file(self.octets)
        raw = Frame.from_array(pixels, "bgr8", self.stamp_ns, self.frame_id)
        check_layout(raw.height, raw.width, raw.step, raw.encoding)
        return raw

    def pixels(self) -> np.ndarray:
        """A copy as BGR uint8 [height, width, 3], for drawing. Raises BadImage like check and decode."""
        self.check()
        raw = self.decode()
        channels = PIXEL_BYTES[raw.encoding]
        rows = raw.octets[: raw.step * raw.height].reshape(raw.height, raw.step)
        image = rows[:, : raw.width * channels].reshape(raw.height, raw.width, channels)
        return np.ascontiguousarray(image[:, :, CHANNELS[raw.encoding][::-1]])


def as_bytes(data: Bytes) -> np.ndarray:
    """Any buffer as a uint8 array [n]."""
    if isinstance(data, np.ndarray):
        return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return np.frombuffer(data, np.uint8)


def check_layout(height: int, width: int, step: int, encoding: str) -> None:
    """Raise BadImage if no raw image can have these sizes."""
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise BadImage("size", f"a size of {width}x{height} is impossible; each side must be 1 to {MAX_SIDE}")
    row = width * PIXEL_BYTES[encoding]
    if step < row:
        raise BadImage("step", f"step {step} is too short: {width} pixels of {encoding} need {row} bytes a row")


def check_amount(frame: Frame) -> None:
    """Raise BadImage if a raw frame holds fewer bytes than its sizes say."""
    have, need = frame.octets.size, frame.step * frame.height
    if have == 0:
        raise BadImage("empty", f"the image says {frame.width}x{frame.height} but holds no data")
    if have < need:
        rows = f"{frame.height} rows of {frame.step} bytes"
        raise BadImage("truncated", f"{rows} are {need} bytes, but the image has {have}")


def check_file(data: np.ndarray) -> None:
    """Raise BadImage if a JPEG or PNG file is empty, something else, or ends too early."""
    if data.size == 0:
        raise BadImage("empty", "the compressed image holds no data")
    kind = file_encoding(data)
    if kind is None:
        raise BadImage("undecodable", f"{data.size} bytes that begin neither like a JPEG nor like a PNG file")
    if not is_complete(data.tobytes(), kind):
        raise BadImage("truncated", f"the {kind.upper()} file ends after {data.size} bytes, before its end mark")


def file_encoding(data: Bytes) -> str | None:
    """jpeg, png, or None: what the first bytes tell."""
    start = as_bytes(data)[: len(PNG_START)].tobytes()
    if start.startswith(JPEG_START):
        return "jpeg"
    return "png" if start == PNG_START else None


def is_complete(data: bytes, kind: str) -> bool:
    """True if the end mark is there. Decoders fill the missing part of a cut file with grey instead of failing."""
    if kind == "png":
        return PNG_END in data[-64:]
    return data.find(JPEG_END, jpeg_scan_start(data)) >= 0


def jpeg_scan_start(data: bytes) -> int:
    """Where the pixels begin: behind the header segments, one of which may hold a thumbnail with
    its own end mark.

    Segments are FF, a marker, and a big-endian length that counts itself (ITU-T T.81, B.1.1.4).
    """
    at = len(JPEG_START)
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != JPEG_SCAN:
        filler = data[at + 1] == 0xFF
        at += 1 if filler else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return at


def decode_file(data: np.ndarray) -> np.ndarray:
    """A picture file's pixels as BGR uint8 [height, width, 3]. Raises BadImage."""
    cv2 = require("cv2")
    try:
        pixels = cv2.imdecode(data, cv2.IMREAD_COLOR)
    except cv2.error as error:
        raise BadImage("undecodable", f"the picture cannot be decoded: {error.err}") from None
    if pixels is None:
        raise BadImage("undecodable", f"the picture ({data.size} bytes) cannot be decoded")
    return pixels
