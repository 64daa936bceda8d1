"""Imports and cost of programs: modules, CPU time and peak memory, and the functions that `dynid identify links` calls.

`python -m benchmarks.import_diet [--repeats 5]`
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from ast import literal_eval
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.simulation.descriptions import demo_arm_urdf

ROOT = Path(__file__).resolve().parents[1]
DURATION_S = 27.0
RATE_HZ = 125.0
HARMONICS = 5
FIGURES = ("modules", "faces", "CPU s", "MB", "files run", "functions run")
COMMAND = "from dynid_ros.cli import main; main()"
HARNESS = """
import atexit, os, resource, sys
sys.path.insert(0, os.getcwd())
seen = set()
def profile(frame, event, argument):
    if event == "call" and frame.f_code.co_flags & 1:  # a function: bodies of modules and classes have other flags
        seen.add(frame.f_code)
def measure(folder=os.path.join(os.getcwd(), "dynid_ros") + os.sep):
    sys.setprofile(None)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/status") as status:  # ru_maxrss includes the peak memory of the parent process
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    ours = [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "dynid_ros"]
    ran = [code for code in tuple(seen) if code.co_filename.startswith(folder) and code.co_filename.endswith(".py")]
    measured = {
        "modules": len([module for module in ours if not hasattr(module, "__path__")]),
        "faces": len([module for module in ours if hasattr(module, "__path__")]),
        "CPU s": usage.ru_utime + usage.ru_stime,
        "MB": int(peak) / 1024,
        "files run": len({code.co_filename for code in ran}),
        "functions run": len([code for code in ran if code.co_name[0] != "<"]),  # 3.12 has no code for comprehensions
    }
    with open(WRITTEN, "w") as file:
        print(repr(measured), file=file)
atexit.register(measure)
"""
"""Code that runs before each program, in the root of the measured version; it writes the file WRITTEN."""
PROFILE = "import threading; threading.setprofile(profile); sys.setprofile(profile)\n"


def programs(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Return source and arguments by name, for an arm and a recording that are written to a folder."""
    urdf, recording = folder / "arm.urdf", folder / "run.npz"
    urdf.write_text(demo_arm_urdf(), encoding="utf-8")
    write_motion(RobotModel.from_urdf(urdf), recording)
    data = ["--urdf", str(urdf), "--recording", str(recording)]
    sources = {
        "dynid --help": (COMMAND, ["--help"]),
        "dynid check": (COMMAND, ["check", *data]),
        "dynid identify links": (COMMAND, ["identify", "links", *data, "--output", str(folder / "out")]),
    }
    for node in ("gravity_compensation", "recorder"):
        sources[f"import {node}"] = (f"import dynid_ros.nodes.{node}", [])
    return sources


def write_motion(robot: RobotModel, path: Path) -> None:
    """Write a recording of all joints in sums of sines, with friction and noise in the torque."""
    rng = np.random.default_rng(0)
    time = np.arange(0, DURATION_S, 1 / RATE_HZ)
    shape = (HARMONICS, robot.n_joints)
    rates = 2 * np.pi * 0.1 * np.arange(1, HARMONICS + 1)[:, None]
    sizes, phases = rng.uniform(0.1, 0.3, shape), rng.uniform(0, 2 * np.pi, shape)
    angle = rates * time[:, None, None] + phases
    q, qd, qdd = ((sizes * rates**k * np.sin(angle + k * np.pi / 2)).sum(axis=1) for k in range(3))  # (N, n)
    torque = robot.inverse_dynamics(q, qd, qdd) + np.tanh(qd / 0.02) + 0.5 * qd + 0.05 * rng.standard_normal(q.shape)
    Recording(robot.joint_names, time, q + 1e-5 * rng.standard_normal(q.shape), qd, torque).write_npz(path)


def run(root: Path, program: str, arguments: Sequence[str], folder: Path, profiled: bool = False) -> dict[str, float]:
    """Return the imports and the cost of a program of the version in `root`."""
    output = folder / "measured.json"
    settings = f"import sys; WRITTEN = {str(output)!r}; sys.argv = {['dynid', *arguments]!r}"
    source = f"{settings}{HARNESS}{PROFILE if profiled else ''}{program}"
    output.unlink(missing_ok=True)
    process = subprocess.run([sys.executable, "-c", source], cwd=root, capture_output=True, text=True, check=False)
    if not output.exists():
        raise RuntimeError(f"{program} {' '.join(arguments)}:\n{process.stderr}")
    return literal_eval(output.read_text())


def measure(root: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Return figures by program: minimum CPU time and memory over the repeats; functions from a separate run."""
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, (program, arguments) in programs(folder).items():
            runs = [run(root, program, arguments, folder) for _ in range(repeats)]
            figures[title] = {key: min(values[key] for values in runs) for key in runs[0]}
            profiled = run(root, program, arguments, folder, profiled=True)
            figures[title] |= {key: profiled[key] for key in ("files run", "functions run")}
    return figures


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="runs of each program (%(default)s)")
    options = parser.parse_args()
    print(f"{'program':28}" + "".join(f"{title:>15}" for title in FIGURES))
    for title, row in measure(ROOT, options.repeats).items():
        print(f"{title:28}" + "".join(f"{row[key]:15.4g}" for key in FIGURES))


if __name__ == "__main__":
    main()
