"""Frames: what is refused and why, and that step and encodings are read as they are meant."""

from __future__ import annotations

import array

import cv2
import numpy as np
import pytest

from tensor_engine.perception.frame import BadImage, Frame, is_complete

BYTES = np.zeros(4, np.uint8)


def raw(encoding="rgb8", width=4, height=2, step=12, size=24) -> Frame:
    return Frame(np.zeros(size, np.uint8), encoding, height, width, step)


GOOD = {
    "rgb8": raw(),
    "641x480 step 1924": raw(width=641, height=480, step=1924, size=1924 * 480),
    "5 wide step 16": raw(width=5, step=16, size=32),
    "mono8": raw("mono8", step=4, size=8),
    "rgba8": raw("rgba8", step=16, size=32),
    "bgra8 with padding": raw("bgra8", step=21, size=42),
    "more data than needed": raw(size=1000),
    "one pixel": raw(width=1, height=1, step=3, size=3),
}

BAD = {
    "unknown encoding": (raw("16UC1"), "encoding"),
    "mono16": (raw("mono16"), "encoding"),
    "no encoding": (raw(""), "encoding"),
    "step too short": (raw(step=11), "step"),
    "step of another encoding": (raw("rgba8", step=12), "step"),
    "step 0": (raw(step=0), "step"),
    "truncated by one byte": (raw(size=23), "truncated"),
    "one row missing": (raw(size=12), "truncated"),
    "no data": (raw(size=0), "empty"),
    "width 0": (raw(width=0, step=0, size=0), "size"),
    "height 0": (raw(height=0, size=0), "size"),
    "negative width": (raw(width=-4), "size"),
    "334692672 wide": (raw(width=334692672, step=12), "size"),
    "empty file": (Frame(b"", "jpeg", 0, 0, 0), "empty"),
    "text that claims to be a picture": (Frame(b"not a picture at all", "png", 0, 0, 0), "undecodable"),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_layouts_pass(name):
    GOOD[name].check()


@pytest.mark.parametrize("name", BAD)
def test_bad_layouts_are_refused_with_their_reason(name):
    frame, reason = BAD[name]
    with pytest.raises(BadImage) as caught:
        frame.check()
    assert caught.value.reason == reason
    assert len(str(caught.value)) > 20


@pytest.mark.parametrize("wrap", [bytes, memoryview, bytearray, lambda b: array.array("B", b)])
def test_any_buffer_is_taken_without_a_copy(wrap):
    data = wrap(bytes(range(24)))
    frame = Frame(data, "rgb8", 2, 4, 12)
    frame.check()
    assert frame.octets.tolist() == list(range(24))
    assert np.shares_memory(frame.octets, np.frombuffer(data, np.uint8))


def picture(kind: str) -> bytes:
    rng = np.random.default_rng(0)
    ok, data = cv2.imencode(kind, cv2.resize(rng.integers(0, 255, (8, 8, 3), np.uint8), (64, 48)))
    assert ok
    return data.tobytes()


@pytest.mark.parametrize("kind", [".jpg", ".png"])
def test_every_truncation_of_a_picture_is_refused(kind):
    data = picture(kind)
    Frame.from_file(data).check()
    for length in range(len(data)):
        with pytest.raises(BadImage) as caught:
            Frame.from_file(data[:length]).check()
        assert caught.value.reason in ("empty", "truncated", "undecodable")


def test_the_end_mark_of_a_thumbnail_does_not_end_the_picture():
    data = picture(".jpg")
    thumbnail = b"\xff\xd8 a small picture \xff\xd9"
    segment = b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail
    with_thumbnail = data[:2] + segment + data[2:]
    assert is_complete(with_thumbnail, "jpeg")
    assert not is_complete(with_thumbnail[:-2], "jpeg")


def test_a_picture_decodes_to_bgr(astronaut_path):
    frame = Frame.from_file(astronaut_path.read_bytes(), stamp_ns=5, frame_id="camera")
    frame.check()
    decoded = frame.decode()
    expected = cv2.imread(str(astronaut_path))
    assert (decoded.encoding, decoded.stamp_ns, decoded.frame_id) == ("bgr8", 5, "camera")
    np.testing.assert_array_equal(decoded.octets.reshape(expected.shape), expected)


def test_a_damaged_picture_that_has_its_marks_is_undecodable():
    data = bytearray(picture(".png"))
    data[20:40] = bytes(20)
    with pytest.raises(BadImage) as caught:
        Frame.from_file(bytes(data)).decode()
    assert caught.value.reason == "undecodable"


@pytest.mark.parametrize("encoding, back", [
    ("rgb8", cv2.COLOR_RGB2BGR), ("rgba8", cv2.COLOR_RGBA2BGR), ("bgra8", cv2.COLOR_BGRA2BGR),
    ("mono8", cv2.COLOR_GRAY2BGR), ("bgr8", None),
])
def test_pixels_for_drawing_are_bgr_whatever_came_in(encoding, back):
    channels = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}[encoding]
    step = 5 * channels + 3
    data = np.random.default_rng(1).integers(0, 255, (4, step), np.uint8)
    pixels = np.ascontiguousarray(data[:, : 5 * channels].reshape(4, 5, channels))
    expected = pixels if back is None else cv2.cvtColor(pixels, back)
    np.testing.assert_array_equal(Frame(data, encoding, 4, 5, step).pixels(), expected)
