"""What the executable says where ROS 2 is not installed."""

import os
import subprocess
import sys

from conftest import REPOSITORY


def test_it_names_what_is_missing_and_where_that_comes_from(tmp_path):
    missing = tmp_path / "rclpy"
    missing.mkdir()
    (missing / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'rclpy'\")")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])}
    command = [sys.executable, "-m", "ros_node.perception_node"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("perception_node: No module named 'rclpy'. ROS 2 packages come from apt")
    assert "Traceback" not in done.stderr
