"""One node, alive through everything that follows, fed over real DDS."""

from collections import Counter

import cv2
import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("vision_msgs", reason="vision_msgs is not installed")

from conftest import reserve_domain
from live_ros import fake_node, header, image, station
from sensor_msgs.msg import CompressedImage, Image


@pytest.fixture(scope="module")
def live():
    with reserve_domain() as domain:
        node = fake_node(domain, image_transport="raw", image_width=8, image_height=6, card_path="''")
        with station(domain, node) as one:
            one.ready()
            yield one


@pytest.fixture
def counted(live):
    """The node, and a function that tells which counts have changed since the test began."""
    before = live.frame_counts()

    def changes():
        now = live.frame_counts()
        changed = {key: now[key] - before.get(key, 0) for key in now}
        return {key: change for key, change in changed.items() if change}

    return live, changes


def test_a_detection_is_in_source_pixels(live):
    found = live.ask(image(640, 480, value=204)).detections
    assert len(found) == 1
    box, result = found[0].bbox, found[0].results[0]
    assert (box.center.position.x, box.center.position.y, box.center.theta) == (320, 240, 0)
    assert (box.size_x, box.size_y) == (640, 480)
    assert result.hypothesis.class_id == "person"
    assert result.hypothesis.score == pytest.approx(204 / 255)
    assert found[0].id == ""


@pytest.mark.parametrize(
    "sent",
    [header(1700000000, 123456789, "camera"), header(), header(-5, 7, "before 1970"), header(2**31 - 1, 999999999)],
    ids=["usual", "zero", "negative", "latest"],
)
def test_headers_pass_through(live, sent):
    answer = live.ask(image(header=sent))
    assert answer.header == sent
    assert [detection.header for detection in answer.detections] == [sent]


def test_a_frame_without_detections_has_an_empty_message(live):
    sent = header(3, 4, "dark")
    answer = live.ask(image(value=0, header=sent))
    assert answer.header == sent
    assert answer.detections == []


@pytest.mark.parametrize(
    ("width", "encoding", "step"),
    [(641, "rgb8", 1924), (5, "rgb8", 16), (8, "mono8", 8), (8, "rgba8", 32), (8, "bgra8", 32), (8, "bgr8", 24)],
)
def test_encodings_and_padded_rows_change_while_the_node_runs(live, width, encoding, step):
    answer = live.ask(image(width, 6, encoding=encoding, step=step))
    assert answer.detections[0].bbox.size_x == width


BAD = [
    ("size", image(width=0, height=0, data=b"")),
    ("size", image(width=334692672, height=1, step=24, data=bytes(24))),
    ("empty", image(data=b"")),
    ("truncated", image(data=bytes(100))),
    ("step", image(step=8, data=bytes(48))),
    ("encoding", image(encoding="16UC1", step=16, data=bytes(96))),
    ("encoding", image(encoding="mono16", is_bigendian=1, step=16, data=bytes(96))),
    ("encoding", image(encoding="\N{SNOWMAN}")),
]


def test_bad_images_are_counted_by_reason_and_the_node_lives(counted):
    live, changes = counted
    for _, message in BAD:
        live.publisher(Image, "/image_raw").publish(message)
        live.spin(0.05)
    status = live.until_status("frames", level=1)
    assert status["message"].startswith("rejected: ")
    live.ask(image())
    reasons = Counter(f"rejected_{reason}" for reason, _ in BAD)
    assert changes() == {"received": 9, "published": 1, "rejected": 8, **reasons}


def test_every_image_is_accounted_for_at_60_hz(counted):
    live, changes = counted
    publisher, before = live.publisher(Image, "/image_raw"), len(live.detections)
    reports = len(live.diagnostics)
    for number in range(120):
        publisher.publish(image(header=header(number)))
        live.spin(1 / 60)
    counts = changes()
    assert counts["published"] == len(live.detections) - before
    assert counts["received"] == counts["published"] + counts.get("superseded", 0)
    stamps = [message.header.stamp.sec for message in live.detections[before:]]
    assert stamps == sorted(set(stamps))
    assert stamps[-1] == 119, "the newest image is never the one that is superseded"
    times = [when for when, _ in live.diagnostics[reports:]]
    assert all(0.5 < later - earlier < 1.5 for earlier, later in zip(times, times[1:]))


def test_diagnostics_tell_the_stages_and_keep_to_rep_107(live):
    live.ask(image())
    live.next_report()
    message = live.diagnostics[-1][1]
    assert [status.name for status in message.status] == [
        "perception_node: model", "perception_node: camera", "perception_node: frames", "perception_node: timing",
    ]
    assert all(status.hardware_id for status in message.status)
    timing = live.status("timing")
    for stage in ("queue", "load", "run", "publish", "cycle"):
        p50, p99, most = (float(timing[f"{stage}_{name}_ms"]) for name in ("p50", "p99", "max"))
        assert 0 <= p50 <= p99 <= most
    assert timing["run_last_ms"] == "2.000", "what the pipeline says it took"
    assert live.status("camera")["transport"] == "raw"


def test_labels_reach_who_comes_late(live):
    live.until(lambda: live.labels, "label_info")
    names = {one.class_id: one.class_name for one in live.labels[-1].class_map}
    assert names == {0: "person", 1: "car"}


def test_thresholds_are_the_models_until_they_are_set(live):
    assert live.get_parameter("score_threshold") == 0.25
    assert live.get_parameter("nms_threshold") == 0.5


def test_a_threshold_changes_at_once_and_takes_an_integer(live):
    assert live.set_parameters(score_threshold=1)[0].successful
    assert live.ask(image(value=204)).detections == []
    live.until(lambda: live.labels[-1].threshold == 1.0, "label_info with the new threshold")
    assert live.set_parameters(score_threshold=0.25)[0].successful
    assert len(live.ask(image(value=204)).detections) == 1


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("score_threshold", 1.5, "out of range"),
        ("nms_threshold", -0.1, "out of range"),
        ("score_threshold", "high", "Wrong parameter type"),
        ("deadline_ms", -1.0, "out of range"),
        ("classes", ["persn"], "no class 'persn'"),
        ("model_path", "other.onnx", "read-only"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_with_a_reason(live, name, value, reason):
    before = live.get_parameter(name)
    result = live.set_parameters(**{name: value})[0]
    assert not result.successful
    assert reason in result.reason
    assert live.get_parameter(name) == before


def test_classes_filter(live):
    assert live.set_parameters(classes=["car"])[0].successful
    answer = live.ask(image())
    assert [one.results[0].hypothesis.class_id for one in answer.detections] == ["car"]
    assert live.set_parameters(classes=[""])[0].successful
    answer = live.ask(image())
    assert [one.results[0].hypothesis.class_id for one in answer.detections] == ["person"]


def test_a_disabled_node_lets_images_pass(counted):
    live, changes = counted
    assert live.set_parameters(enable=False)[0].successful
    live.publisher(Image, "/image_raw").publish(image())
    assert changes() == {"passed_while_not_running": 1}
    assert live.set_parameters(enable=True)[0].successful
    live.ask(image())
    assert changes() == {"passed_while_not_running": 1, "received": 1, "published": 1}


def test_missed_deadlines_are_counted(counted):
    live, changes = counted
    assert live.set_parameters(deadline_ms=0.001)[0].successful
    live.ask(image())
    status = live.until_status("timing", level=1)
    assert "missed" in status["message"]
    assert int(status["deadline_misses"]) == 1
    assert live.set_parameters(deadline_ms=0)[0].successful


def jpeg(image):
    return CompressedImage(format="jpeg", data=cv2.imencode(".jpg", image)[1].tobytes())


@pytest.fixture(scope="module")
def compressed():
    """A node that finds by itself that the camera sends JPEG, and learns from its first good image."""
    with reserve_domain() as domain, station(domain, fake_node(domain)) as one:
        picture = jpeg(np.full((48, 64, 3), 128, np.uint8))
        broken = CompressedImage(format="jpeg", data=picture.data[:100])
        publisher = one.publisher(CompressedImage, "/image_raw/compressed")
        one.until(publisher.get_subscription_count, "the node to find the camera")
        one.until(lambda: one.state() == "waiting", "the model to be loaded")
        publisher.publish(broken)
        one.until_status("frames", rejected=1)
        one.ready(CompressedImage, "/image_raw/compressed", picture)
        yield one


def test_the_first_usable_image_tells_what_to_compile_for(compressed):
    for line in ("taking compressed images from /image_raw/compressed", "compiling for 64x48 bgr8"):
        compressed.until(lambda line=line: compressed.said(line), line)
    assert compressed.status("frames")["published"] == "0"


def test_a_jpeg_is_detected_in_its_own_pixels(compressed):
    answer = compressed.ask(jpeg(np.full((30, 40, 3), 255, np.uint8)), "/image_raw/compressed")
    assert answer.detections[0].bbox.size_x == 40


BROKEN = {"empty": b"", "truncated": b"\xff\xd8\xff\xe0 and no end", "undecodable": b"hello, this is a text"}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_broken_jpeg_is_counted_and_the_node_lives(compressed, reason):
    before = int(compressed.status("frames").get(f"rejected_{reason}", 0))
    publisher = compressed.publisher(CompressedImage, "/image_raw/compressed")
    publisher.publish(CompressedImage(format="jpeg", data=BROKEN[reason]))
    compressed.until_status("frames", **{f"rejected_{reason}": before + 1})
    assert compressed.ask(jpeg(np.zeros((8, 8, 3), np.uint8)), "/image_raw/compressed").detections == []
