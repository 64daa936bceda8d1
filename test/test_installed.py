"""Test commands and nodes installed by colcon, pip and uv in an empty environment.

The source tree is built; the libraries are those of the tests, to avoid downloads.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import demo_arm_model
import planar_arm
import pytest
from test_cli_links import QUICK, planar_recording

from dynid_ros.nodes.shared.child_process import stop

ROOT = Path(__file__).resolve().parents[1]
BUILDERS = Path(sys.prefix) / "builders"
"""Folder in which the Makefile installs colcon and uv."""
NODES = sorted(["demo", *(path.stem for path in (ROOT / "dynid_ros/nodes").glob("[!_]*.py"))])
PATIENCE = 300.0
"""Timeout in s of a command, and of the start of all nodes."""

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.slow,
    pytest.mark.skipif(not BUILDERS.is_dir(), reason="colcon and uv are not installed: `make test-slow` does it"),
]


@dataclass(frozen=True)
class Installation:
    """Installed command, the prefix to start a node, and the environment."""

    dynid: Path
    node: tuple[str, ...]
    environment: dict[str, str]

    def run(self, folder, *arguments):
        """Return the exit code of the command without input."""
        words = [self.dynid, *map(str, arguments)]
        return subprocess.run(words, cwd=folder, env=self.environment, timeout=PATIENCE, check=False).returncode


def called(*words, **settings):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def empty(folder, *programs):
    return {"HOME": str(folder), "PATH": os.pathsep.join([*map(str, programs), "/usr/bin", "/bin"])}


def lend_libraries(prefix, *others):
    """Make the libraries of the tests, without this package, importable below `prefix`."""
    folder = prefix / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    libraries = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (folder / "libraries.pth").write_text("\n".join(map(str, [*others, *libraries])))


def interpreter(folder, *others):
    called(sys.executable, "-m", "venv", "--without-pip", folder)
    lend_libraries(folder, *others)
    return folder / "bin" / "python"


def by_colcon(folder, *options):
    python = interpreter(folder / "machine", BUILDERS)
    bases = [word for name in ("build", "install") for word in (f"--{name}-base", folder / name)]
    colcon = (python, "-c", "from colcon_core.command import main; raise SystemExit(main())")
    environment = empty(folder, python.parent)
    called(*colcon, "--log-base", folder / "log", "build", "--base-paths", ROOT, *bases, *options, env=environment)
    printed = called("bash", "-c", f"source {folder}/install/setup.bash && env -0", env=environment)
    sourced = dict(line.split("=", 1) for line in printed.split("\0") if line)
    (dynid,) = [path for path in sourced["PATH"].split(os.pathsep) if (Path(path) / "dynid").is_file()]
    nodes = folder / "install" / "dynid_ros" / "lib" / "dynid_ros"
    assert sorted(path.name for path in nodes.iterdir()) == sorted(["dynid", *NODES])
    return Installation(Path(dynid) / "dynid", (f"{nodes}/{{}}",), sourced)


@pytest.fixture(name="wheel", scope="module")
def fixture_wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns(".*", "__pycache__", "build", "install", "log", "*.egg-info", "test", "benchmarks")
    shutil.copytree(ROOT, folder / "source", ignore=ignored)
    called(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder, folder / "source")
    (wheel,) = folder.glob("*.whl")
    return wheel


def only_dynid(folder, before=frozenset()):
    """Return the path of the only command that a wheel installs."""
    assert {path.name for path in folder.iterdir()} - before == {"dynid"}
    return folder / "dynid"


def by_pip(folder, wheel):
    python = interpreter(folder / "venv")
    before = {path.name for path in python.parent.iterdir()}
    pip = (sys.executable, "-m", "pip", "--python", python)
    called(*pip, "install", "-q", "--no-deps", "--no-index", "--force-reinstall", wheel)
    dynid = only_dynid(python.parent, before)
    return Installation(dynid, (str(dynid), "node", "{}"), empty(folder))


def by_uv(folder, wheel):
    with ZipFile(wheel) as content:
        (metadata,) = [name for name in content.namelist() if name.endswith(".dist-info/METADATA")]
        names = re.findall(r"^Requires-Dist: ([\w-]+)", content.read(metadata).decode(), re.MULTILINE)
    without = folder / "overrides.txt"
    without.write_text("\n".join(f"{name}; python_version < '3'" for name in names))
    places = {name: str(folder / name) for name in ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "UV_CACHE_DIR")}
    install = ("tool", "install", "--offline", "--no-config", "--python", sys.executable, "--overrides", without, wheel)
    called(BUILDERS / "bin" / "uv", *install, env=empty(folder) | places)
    lend_libraries(folder / "UV_TOOL_DIR" / "dynid-ros")
    dynid = only_dynid(folder / "UV_TOOL_BIN_DIR")
    return Installation(dynid, (str(dynid), "node", "{}"), empty(folder))


@pytest.fixture(name="installed", scope="module")
def fixture_installed(request, tmp_path_factory):
    kind, *options = request.param.split()
    folder = tmp_path_factory.mktemp(kind)
    if kind == "colcon":
        return by_colcon(folder, *options)
    return {"pip": by_pip, "uv": by_uv}[kind](folder, request.getfixturevalue("wheel"))


@pytest.mark.parametrize("installed", ["colcon", "colcon --symlink-install", "pip", "uv"], indirect=True)
def test_commands(installed, tmp_path):
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf())
    planar_recording().write_npz(tmp_path / "run.npz")
    arm = ("--urdf", "arm.urdf")
    recording = ("--recording", "run.npz")
    search = ("--base-frequency", "0.2", "--harmonics", "2", "--starts", "2", "--workers", "2")
    assert installed.run(tmp_path, "excite", *arm, "--acceleration-limits", "4", *search, "--output", "motion") in (
        0,
        1,
    )
    assert (tmp_path / "motion" / "trajectory.yaml").is_file()
    assert installed.run(tmp_path, "check", *arm, *recording) == 0
    assert installed.run(tmp_path, "identify", "links", *arm, *recording, *QUICK, "--output", "found") == 0
    assert {path.name for path in (tmp_path / "found").iterdir()} >= {"identified.yaml", "report.html"}


@pytest.mark.parametrize("installed", ["colcon", "pip"], indirect=True)
def test_nodes(installed, tmp_path):
    """Start all nodes with one simulated arm, as in the demo."""
    rclpy = pytest.importorskip("rclpy")
    pytest.importorskip("mujoco")
    ros = {name: value for name, value in os.environ.items() if name.startswith(("ROS_", "RMW_", "LD_LIBRARY_PATH"))}
    prefixes = [installed.environment.get("AMENT_PREFIX_PATH"), os.environ.get("AMENT_PREFIX_PATH")]
    ros["AMENT_PREFIX_PATH"] = os.pathsep.join(filter(None, prefixes))
    arguments = ("--ros-args", "--params-file", ROOT / "config" / "demo.yaml", "-p", "effort_convention:=torque")
    links = demo_arm_model.write(tmp_path / "identified.yaml", links=True)
    arguments = (*arguments, "-p", f"external_torque:model_file:={links}")
    started = {}
    rclpy.init()
    watcher = rclpy.create_node("watcher")
    try:
        for name in NODES:
            with (tmp_path / f"{name}.log").open("w") as log:
                words = [*(word.format(name) for word in installed.node), *arguments]
                environment = installed.environment | ros
                started[name] = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        while missing := set(NODES) - set(watcher.get_node_names()):
            ended = {name for name in missing if started[name].poll() is not None}
            assert not ended, (tmp_path / f"{min(ended)}.log").read_text()
            assert time.monotonic() < deadline, missing
            time.sleep(0.2)
    finally:
        watcher.destroy_node()
        rclpy.shutdown()
        stop(started.values(), PATIENCE)
    codes = {name: process.returncode for name, process in started.items()}
    assert codes.pop("demo") in (0, 1)  # no motion was demonstrated
    assert set(codes.values()) <= {0, -signal.SIGALRM}  # or a node that hangs in the middleware
