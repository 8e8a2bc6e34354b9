"""Serves a node until it is asked to end, and says why it ended."""

from __future__ import annotations

import threading
import traceback

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from ros_node import process
from ros_node.node import PerceptionNode, PipelineFactory
from ros_node.parameters import BadParameter
from tensor_engine.perception.errors import ModelError
from tensor_engine.perception.extras import MissingExtra
from tensor_engine.perception.pipeline import Pipeline

STOP = 0.5  # seconds that a cycle in progress is given to end

# What ends the node with one line instead of a traceback.
USER_MISTAKES = (ModelError, BadParameter, ParameterException, MissingExtra)


def serve(ending: threading.Event, args: list[str] | None, pipeline_factory: PipelineFactory = Pipeline) -> int:
    """Runs until `ending` is set or the node cannot go on. The exit code: 0, 2 the user's mistake, 1 ours."""
    process.keep_large_buffers()
    try:
        node = create_node(args, pipeline_factory)
    except USER_MISTAKES as error:
        return exit_code(error)
    code = exit_code(spin(node, ending))
    stopped = node.worker.stop(STOP)
    node.destroy_node()
    rclpy.shutdown()
    if not stopped:
        process.end_now(code)
    return code


def create_node(args: list[str] | None, pipeline_factory: PipelineFactory) -> PerceptionNode:
    """A node from the command line's arguments."""
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        return PerceptionNode(pipeline_factory)
    except RuntimeError as error:  # how rclpy tells bad arguments, names and QoS overrides
        raise BadParameter(str(error)) from error


def spin(node: PerceptionNode, ending: threading.Event) -> Exception | None:
    """Serves the node until it is asked to end, or its worker fails: then why."""
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while not ending.is_set() and node.worker.failure is None:
        executor.spin_once(timeout_sec=0.1)
    executor.shutdown()
    return node.worker.failure


def exit_code(failure: Exception | None) -> int:
    """Says why the node ends: in one line for a mistake of the user's, in full for one of ours."""
    if failure is None:
        return process.OK
    logger = rclpy.logging.get_logger("perception_node")
    if isinstance(failure, USER_MISTAKES):
        logger.fatal(str(failure))
        return process.USER_MISTAKE
    logger.fatal("".join(traceback.format_exception(failure)))
    return process.OUR_FAULT
