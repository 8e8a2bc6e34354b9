"""The node among others: topics, namespaces, QoS, clocks, a camera that is too fast."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("vision_msgs", reason="vision_msgs is not installed")

from conftest import reserve_domain
from live_ros import fake_node, header, image, station
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, Image

SMALL = {"image_width": 8, "image_height": 6}
BEST_EFFORT = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)


def test_a_camera_that_is_there_first_is_found():
    with reserve_domain() as domain:
        node = fake_node(domain, **SMALL)
        with station(domain, node) as one:
            one.publisher(Image, "/image_raw", BEST_EFFORT)
            one.ready()
            one.ask(image())
            assert one.status("camera")["transport"] == "raw"


def test_two_nodes_in_two_namespaces_have_their_own_topics():
    with reserve_domain() as domain:
        left = fake_node(domain, "", ["-r", "__ns:=/left"], **SMALL)
        right = fake_node(domain, "", ["-r", "__ns:=/right", "-r", "image_raw:=/stereo/right"], **SMALL)
        with station(domain, left, "/left/perception_node") as a, station(domain, right, "/right/perception_node") as b:
            a.ready(topic="/left/image_raw")
            b.ready(topic="/stereo/right")
            assert a.ask(image(header=header(1)), "/left/image_raw").header.stamp.sec == 1
            assert b.ask(image(header=header(2)), "/stereo/right").header.stamp.sec == 2
            assert {message.header.stamp.sec for message in a.detections} == {0, 1}
            absolute = {name for name, _ in a.node.get_topic_names_and_types()}
    ours = {"/diagnostics", "/rosout", "/parameter_events", "/stereo/right"}
    assert all(name in ours or name.startswith(("/left/", "/right/")) for name in absolute)


def test_a_topic_that_is_named_compressed_is_taken_as_such():
    with reserve_domain() as domain:
        node = fake_node(domain, "", ["-r", "image_raw:=/front/image/compressed"], image_transport="raw", **SMALL)
        with station(domain, node) as one:
            publisher = one.publisher(CompressedImage, "/front/image/compressed")
            one.until(publisher.get_subscription_count, "the node to subscribe")


def test_an_incompatible_camera_is_an_error_that_names_the_policy():
    override = {"qos_overrides./image_raw.subscription.reliability": "reliable"}
    with reserve_domain() as domain:
        node = fake_node(domain, image_transport="raw", **SMALL, **override)
        with station(domain, node) as one:
            one.publisher(Image, "/image_raw", BEST_EFFORT)
            status = one.until_status("camera", level=2)
            one.until(lambda: one.said("offers an incompatible RELIABILITY policy"), "the error in the log")
    assert "RELIABILITY" in status["message"]


def test_a_slow_model_takes_the_newest_image_and_counts_the_others():
    with reserve_domain() as domain:
        node = fake_node(domain, "run=0.2", image_transport="raw", **SMALL)
        with station(domain, node) as one:
            one.ready()
            publisher = one.publisher(Image, "/image_raw")
            delays = []
            for number in range(1, 91):
                publisher.publish(image(header=header(number)))
                before = len(one.detections)
                one.spin(1 / 30)
                delays += [number - found.header.stamp.sec for found in one.detections[before:]]
            counts = one.frame_counts()
    assert counts["received"] == counts["published"] + counts["superseded"]
    assert counts["published"] == len(one.detections)
    assert counts["superseded"] > counts["published"]
    assert one.detections[-1].header.stamp.sec == 90
    # An answer lags behind the camera by at most the image that is waited for and the one before it.
    assert np.median(delays) < 30, "images do not queue up"


def test_diagnostics_go_on_while_simulated_time_stands_still():
    with reserve_domain() as domain:
        node = fake_node(domain, image_transport="raw", use_sim_time=True, **SMALL)
        with station(domain, node) as one:
            clock = one.publisher(Clock, "/clock")
            one.until(clock.get_subscription_count, "the node to listen to the clock")
            one.ready()
            now = Clock()
            now.clock.sec = 1000
            clock.publish(now)
            one.until(lambda: one.diagnostics[-1][1].header.stamp.sec == 1000, "the simulated time")
            one.ask(image(header=header(998)))
            one.next_report()
            one.next_report()
            status = one.status("timing")
    assert float(status["current_delay_from_realtime_ms"]) == pytest.approx(2000)
    assert status["level"] == "0"


def test_the_debug_image_is_drawn_only_for_who_looks():
    with reserve_domain() as domain:
        node = fake_node(domain, image_transport="raw", **SMALL)
        with station(domain, node) as one:
            one.ready()
            one.ask(image(64, 48))
            pictures = []
            subscription = one.listen(Image, "/perception_node/debug_image", pictures.append)
            one.until(subscription.get_publisher_count, "the publisher")
            sent = image(64, 48, header=header(5, 6, "camera"))
            one.ask(sent)
            one.until(lambda: pictures, "the debug image")
    assert len(pictures) == 1
    assert pictures[0].header == sent.header
    assert (pictures[0].width, pictures[0].height, pictures[0].encoding) == (64, 48, "bgr8")
    assert bytes(pictures[0].data) != bytes(sent.data), "a box is drawn"
