"""What the packaging promises: one version, installed files, few dependencies, imports that run downward."""

from __future__ import annotations

import ast
import configparser
import importlib
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tools import ros_env

REPOSITORY = Path(__file__).resolve().parent.parent
LIBRARY = REPOSITORY / "tensor_engine"
ROS_MODULES = {"ros_node", "rclpy", "launch", "launch_ros", "sensor_msgs", "std_msgs", "vision_msgs", "diagnostic_msgs"}

# A module imports from its own floor or from those named before it.
FLOORS = (
    {"helpers"},
    {"dtype"},
    {"uop", "mixin"},
    {"codegen", "schedule", "renderer", "runtime", "device"},
    {"engine", "files", "from_data", "storage", "tensor"},
    {"nn"},
    {"perception"},
    {"cli"},
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def setup_arguments() -> dict[str, ast.expr]:
    """The keyword arguments of the call of setup()."""
    tree = ast.parse((REPOSITORY / "setup.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    setup = next(call for call in calls if ast.unparse(call.func) == "setup")
    return {keyword.arg: keyword.value for keyword in setup.keywords if keyword.arg}


def manifest() -> ElementTree.Element:
    return ElementTree.parse(REPOSITORY / "package.xml").getroot()


def test_version_is_the_same_everywhere():
    version = ast.literal_eval(setup_arguments()["version"])
    assert manifest().findtext("version") == version
    assert f"\n{version} (" in (REPOSITORY / "CHANGELOG.rst").read_text()


def test_maintainer_and_license_are_the_same_everywhere():
    arguments = setup_arguments()
    maintainer = manifest().find("maintainer")
    assert maintainer is not None
    assert maintainer.text == ast.literal_eval(arguments["maintainer"])
    assert maintainer.get("email") == ast.literal_eval(arguments["maintainer_email"])
    assert manifest().findtext("license") == ast.literal_eval(arguments["license"]) == "Apache-2.0"


def test_ros_accepts_the_manifest():
    catkin_pkg = pytest.importorskip("catkin_pkg.package", reason="catkin_pkg comes with the ROS wheels")
    package = catkin_pkg.parse_package(str(REPOSITORY))
    package.validate()
    assert (package.name, package.get_build_type()) == ("tensor_engine", "ament_python")


def test_ros_finds_the_executables():
    config = configparser.ConfigParser()
    config.read(REPOSITORY / "setup.cfg")
    assert config["develop"]["script_dir"] == "$base/lib/tensor_engine"
    assert config["install"]["install_scripts"] == "$base/lib/tensor_engine"
    assert (REPOSITORY / "resource" / "tensor_engine").read_bytes() == b""


def console_scripts() -> dict[str, str]:
    scripts = ast.literal_eval(setup_arguments()["entry_points"])["console_scripts"]
    return dict(script.split(" = ") for script in scripts)


@pytest.mark.parametrize("name", ["tensor-engine", "perception_node"])
def test_executable_has_a_main(name):
    module, function = console_scripts()[name].split(":")
    if module.startswith("ros_node"):
        pytest.importorskip("rclpy", reason="ROS is not installed")
    assert callable(getattr(importlib.import_module(module), function))


def test_importing_the_library_brings_only_numpy_and_llvmlite():
    code = (
        "import json, sys; before = set(sys.modules); import tensor_engine;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(json.dumps(sorted(new - set(sys.stdlib_module_names))))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) <= {"tensor_engine", "numpy", "llvmlite"}


def sources() -> list[Path]:
    return sorted(LIBRARY.rglob("*.py"))


def test_every_folder_with_modules_gets_installed():
    folders = {file.parent for file in sources()}
    assert not [str(folder.relative_to(REPOSITORY)) for folder in folders if not (folder / "__init__.py").exists()]


def imported_modules(file: Path) -> set[str]:
    """The absolute names of the modules that a file imports, save those for type checkers only."""
    package = file.relative_to(REPOSITORY).parent.parts
    names: set[str] = set()
    for node in runtime_nodes(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, node.module] if node.module else base)
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def runtime_nodes(node: ast.AST):
    """The nodes below this one, without the bodies of `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from runtime_nodes(child)


def test_the_library_knows_no_ros():
    offenders = {
        f"{file.relative_to(REPOSITORY)}: {name}"
        for file in sources()
        for name in imported_modules(file)
        if name.partition(".")[0] in ROS_MODULES
    }
    assert not offenders


def test_imports_run_downward():
    assert len(sources()) > 10
    upward = {
        f"{file.relative_to(REPOSITORY)} imports {name}"
        for file in sources()
        for name in imported_modules(file)
        if floor_of(name) > floor_of(".".join(file.relative_to(REPOSITORY).with_suffix("").parts))
    }
    assert not upward


def floor_of(name: str) -> int:
    """The floor of a module of the library; names that the package itself re-exports belong to the Tensor's."""
    parts = name.split(".")
    if parts[0] != "tensor_engine":
        return -1
    if parts[1] in ("__init__", "__main__"):
        return len(FLOORS)
    return FLOOR_OF.get(parts[1], FLOOR_OF["tensor"])


def test_every_room_has_a_floor():
    rooms = {file.relative_to(LIBRARY).with_suffix("").parts[0] for file in sources()}
    assert rooms - {"__init__", "__main__"} <= set(FLOOR_OF)


# As published; the fixture is worth nothing unless real subscribers accept it.
DETECTION_ARRAY_HASH = "RIHS01_214274120007f4a683866481336b70310268cfa107aebe9d594a6acf75bda968"


def test_detection_messages_are_the_published_ones(monkeypatch):
    pytest.importorskip("vision_msgs", reason="vision_msgs is not installed")
    index = pytest.importorskip("ament_index_python", reason="ROS is not installed")
    monkeypatch.setenv("AMENT_PREFIX_PATH", sys.prefix, prepend=":")  # the wheels do not set it
    share = Path(index.get_package_share_directory("vision_msgs"))
    described = json.loads((share / "msg" / "Detection2DArray.json").read_text())
    hashes = {entry["type_name"]: entry["hash_string"] for entry in described["type_hashes"]}
    assert hashes["vision_msgs/msg/Detection2DArray"] == DETECTION_ARRAY_HASH


@pytest.fixture
def bare_environment(monkeypatch) -> list[tuple[str, ...]]:
    """No ROS is there and nothing gets installed; the requirements that would have been."""
    installed: list[tuple[str, ...]] = []
    monkeypatch.setattr(ros_env, "comes_from_outside", lambda package: False)
    monkeypatch.setattr(ros_env, "pip_install", lambda *requirements: installed.append(requirements))
    return installed


def test_a_platform_without_wheels_goes_on_without_ros(bare_environment, monkeypatch, capsys):
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert ros_env.main() == 0
    assert bare_environment == []
    assert "going on without ROS" in only_line(capsys)


@pytest.mark.skipif(not ros_env.wheels_exist(), reason="there are no ROS wheels for this platform")
def test_without_a_cpp_compiler_the_messages_are_left_out(bare_environment, monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda program: None)
    assert ros_env.main() == 0
    assert len(bare_environment) == 1
    assert "apt install g++" in only_line(capsys)


def only_line(capsys) -> str:
    (line,) = capsys.readouterr().out.splitlines()
    return line


# ---- colcon -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Path:
    """A colcon workspace where this package was built, outside the repository."""
    pytest.importorskip("colcon_core", reason="colcon comes with the ROS wheels")
    folder = tmp_path_factory.mktemp("workspace")
    colcon(folder, "build", "--base-paths", str(REPOSITORY))
    return folder


def colcon(workspace: Path, verb: str, *arguments: str) -> str:
    command = [str(Path(sys.executable).with_name("colcon")), "--log-base", "log", verb, *arguments]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_colcon_installs_what_ros_looks_for(workspace):
    prefix = workspace / "install" / "tensor_engine"
    share = prefix / "share" / "tensor_engine"
    assert (prefix / "share/ament_index/resource_index/packages/tensor_engine").is_file()
    assert {"perception_node", "tensor-engine"} <= {file.name for file in (prefix / "lib/tensor_engine").iterdir()}
    models = [("models", f"*.{kind}") for kind in ("onnx", "yaml", "txt")]
    for folder, pattern in [("launch", "*.launch.py"), ("config", "*"), *models]:
        expected = {file.name for file in (REPOSITORY / folder).glob(pattern)}
        assert expected, f"nothing in {folder}"
        assert expected <= {file.name for file in (share / folder).iterdir()}


def test_installed_executables_start(workspace):
    setup = workspace / "install" / "setup.sh"
    command = workspace / "install/tensor_engine/lib/tensor_engine/tensor-engine"
    done = subprocess.run(["sh", "-c", f". {setup} && {command} --help"], cwd=workspace, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "replay" in done.stdout


def test_colcon_test_runs_the_tests(workspace):
    this_file = str(Path(__file__).relative_to(REPOSITORY))
    colcon(workspace, "test", "--base-paths", str(REPOSITORY), "--pytest-args", this_file, "-k", "same_everywhere")
    summary = colcon(workspace, "test-result")
    assert "2 tests, 0 errors, 0 failures, 0 skipped" in summary
