from glob import glob

from setuptools import find_packages, setup

NAME = "tensor_engine"
SHARE = f"share/{NAME}"

# The ROS wheels exist for one platform only; elsewhere ROS comes from its own installation.
ROS_WHEELS = "; sys_platform == 'linux' and platform_machine == 'x86_64'"

setup(
    name=NAME,
    version="0.2.0",
    description="From camera bytes to detections in one captured program",
    license="Apache-2.0",
    maintainer="tensor_engine maintainers",
    maintainer_email="maintainers@tensor-engine.example",
    python_requires=">=3.10",
    packages=find_packages(include=[NAME, f"{NAME}.*", "ros_node", "ros_node.*"]),
    include_package_data=True,
    zip_safe=False,
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (SHARE, ["package.xml"]),
        (f"{SHARE}/launch", glob("launch/*.launch.py")),
        (f"{SHARE}/config", glob("config/*")),
        (f"{SHARE}/models", [name for kind in ("onnx", "yaml", "txt", "md") for name in glob(f"models/*.{kind}")]),
    ],
    entry_points={
        "console_scripts": [
            "tensor-engine = tensor_engine.cli:main",
            "perception_node = ros_node.perception_node:main",
        ],
    },
    install_requires=[
        "llvmlite>=0.46",
        "numpy>=1.22",
    ],
    extras_require={
        "perception": [
            "click>=8",
            "onnx>=1.14",
            "opencv-python-headless>=4.6",
            "pyyaml>=6",
            "rich>=12",
            "rosbags>=0.10",
        ],
        "ros": [
            f"ros-rclpy[fastrtps]~=9.1{ROS_WHEELS}",
            f"ros-diagnostic-msgs~=5.5{ROS_WHEELS}",
            f"ros-geometry-msgs~=5.5{ROS_WHEELS}",
            f"ros-sensor-msgs~=5.5{ROS_WHEELS}",
            f"ros-std-msgs~=5.5{ROS_WHEELS}",
        ],
        "test": [
            "hypothesis>=6.80",
            "mypy>=2.4,<2.5",
            "onnxruntime>=1.16",
            "pytest>=7.4,<9",
            "pytest-timeout>=2.1",
            "pytest-xdist>=3.3",
            "ruff>=0.17,<0.18",
            "safetensors>=0.8",
        ],
    },
)
