"""Sources: what a path is, the frames in it, and a clear error where there are none."""

from __future__ import annotations

import sqlite3

import cv2
import numpy as np
import pytest
from perception import bags

from tensor_engine.perception.errors import SourceError
from tensor_engine.perception.sources import open_source

PIXELS = np.arange(6 * 12, dtype=np.uint8).reshape(6, 12)


def test_the_street(street_bag):
    source = open_source(street_bag)
    assert (source.kind, source.count, source.topic) == ("bag", 150, "/camera/image_raw/compressed")
    frames = list(source.frames())
    assert len(frames) == 150
    assert {f.frame.encoding for f in frames} == {"jpeg"} and {f.frame.frame_id for f in frames} == {"camera"}
    stamps = np.array([f.frame.stamp_ns for f in frames])
    assert stamps[0] == 1_700_000_000 * bags.SECOND and set(np.diff(stamps)) == {bags.SECOND // 10}


def test_the_file_inside_a_bag(street_bag):
    assert open_source(street_bag / "street.mcap").count == 150


def test_a_video(carphone):
    source = open_source(carphone)
    frames = list(source.frames())
    assert source.kind == "video" and source.count == len(frames) == 120
    assert {(f.frame.encoding, f.frame.width, f.frame.height) for f in frames} == {("bgr8", 176, 144)}
    assert frames[30].frame.stamp_ns == round(30 / 29.97002997002997 * bags.SECOND)


def test_a_picture(astronaut_path, astronaut):
    source = open_source(astronaut_path)
    (sourced,) = source.frames()
    assert source.kind == "picture" and sourced.name == "astronaut" and sourced.frame.encoding == "png"
    np.testing.assert_array_equal(sourced.frame.pixels()[:, :, ::-1], astronaut)


def test_pictures_of_other_formats(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)
    cv2.imwrite(str(tmp_path / "a.bmp"), pixels)
    (sourced,) = open_source(tmp_path / "a.bmp").frames()
    np.testing.assert_array_equal(sourced.frame.pixels(), pixels)


def test_a_folder_of_pictures_by_name(tmp_path):
    for name in ("b.png", "a.jpg", "c.bmp"):
        cv2.imwrite(str(tmp_path / name), np.zeros((8, 8, 3), np.uint8))
    (tmp_path / "notes.txt").write_text("nothing to see")
    source = open_source(tmp_path)
    assert (source.kind, source.count) == ("folder", 3)
    assert [f.name for f in source.frames()] == ["a", "b", "c"]


def test_pictures_of_one_name_keep_apart(tmp_path):
    for name in ("a.png", "a.jpg", "b.jpg"):
        cv2.imwrite(str(tmp_path / name), np.zeros((8, 8, 3), np.uint8))
    assert [f.name for f in open_source(tmp_path).frames()] == ["a.jpg", "a.png", "b.jpg"]


def test_raw_images_keep_their_header_and_step(tmp_path):
    messages = [bags.image(PIXELS, "rgb8", 12, stamp, "eye") for stamp in (0, 7, -3 * bags.SECOND)]
    bag = bags.write_bag(tmp_path / "bag", {"/image": messages})
    frames = list(open_source(bag).frames())
    assert [f.frame.stamp_ns for f in frames] == [0, 7, -3 * bags.SECOND]
    assert [f.time_ns for f in frames] == [bags.SECOND + i * 1_000_000 for i in range(3)]
    frame = frames[0].frame
    assert (frame.height, frame.width, frame.step, frame.frame_id) == (6, 4, 12, "eye")
    np.testing.assert_array_equal(frame.octets, PIXELS.ravel())


def test_the_topic_is_chosen(tmp_path):
    topics = {
        "/words": [bags.text("hello")],
        "/left": [bags.image(PIXELS, "rgb8", 12)],
        "/right": [bags.image(PIXELS, "bgr8", 12)] * 2,
    }
    bag = bags.write_bag(tmp_path / "bag", topics)
    assert open_source(bag).topic == "/left"
    assert open_source(bag, "/right").count == 2
    with pytest.raises(SourceError, match="'/up'.*/left.*/right.*/words"):
        open_source(bag, "/up")
    with pytest.raises(SourceError, match="/words"):
        open_source(bag, "/words")


def test_a_bag_without_images_lists_its_topics(tmp_path):
    bag = bags.write_bag(tmp_path / "bag", {"/words": [bags.text("hello")]})
    with pytest.raises(SourceError, match=r"no image topic; its topics: /words \(std_msgs/msg/String\)"):
        open_source(bag)


def folder_with(tmp_path, name: str, data: bytes):
    path = tmp_path / "source"
    path.mkdir()
    (path / name).write_bytes(data)
    return path


@pytest.mark.parametrize("name, data, says", [
    ("metadata.yaml", b"", "cannot be read"),
    ("metadata.yaml", b"rosbag2_bagfile_information: nonsense", "cannot be read"),
    ("notes.txt", b"hello", "neither a bag"),
])
def test_folders_that_are_no_source(tmp_path, name, data, says):
    with pytest.raises(SourceError, match=says):
        open_source(folder_with(tmp_path, name, data))


@pytest.mark.parametrize("name, data, says", [
    ("a.jpg", b"", "empty"),
    ("a.txt", b"just some text", "neither a picture, a video nor a bag"),
    ("a.mp4", b"\x00\x00\x00\x18ftypmp42" + bytes(40), "neither a picture, a video nor a bag"),
    ("a.mcap", b"not a bag", "cannot be read"),
    ("a.db3", b"not a database", "cannot be read"),
])
def test_files_that_are_no_source(tmp_path, name, data, says):
    with pytest.raises(SourceError, match=says):
        open_source(folder_with(tmp_path, name, data) / name)


def test_what_is_not_there(tmp_path):
    with pytest.raises(SourceError, match="nowhere is not there"):
        open_source(tmp_path / "nowhere")


def test_a_picture_has_no_topic(astronaut_path):
    with pytest.raises(SourceError, match="no bag"):
        open_source(astronaut_path, "/camera")


def test_a_damaged_message_is_named(tmp_path):
    bag = bags.write_bag(tmp_path / "bag", {"/image": [bags.image(PIXELS, "rgb8", 12)]})
    database = next(bag.glob("*.db3"))
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE messages SET data = ?", (b"\x00\x01\x00\x00\xff\xff",))
    connection.close()
    with pytest.raises(SourceError, match="message 0 of /image is damaged"):
        list(open_source(bag).frames())
