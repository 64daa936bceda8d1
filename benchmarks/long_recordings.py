"""Memory and processor time of commands on long recordings: 1 kHz, seven joints, 5, 20 and 60 minutes.

    python -m benchmarks.long_recordings [--minutes 5 20 60] [--rate 1000] [--commands check links validate gravity …]

Every command runs in its own process on an archive that this program writes; `validate`, `load` and `export` need the
result of `links` before them. Memory is the largest resident set, including the pages of mapped files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import blocks
from dynid_ros.recording import CommandSeries, Recording

ROOT = Path(__file__).resolve().parents[1]
N_JOINTS = 7
LINK_LENGTH_M = 0.2
SINES = 4
FREQUENCY_RANGE_HZ = (0.05, 0.5)
AMPLITUDE_RANGE_RAD = (0.1, 0.35)
ENCODER_NOISE_RAD = 1e-5
TORQUE_NOISE_NM = 0.1
LIGHTER_PER_LINK = 0.75
"""Ratio of mass and inertia between consecutive links."""
SERVO_STIFFNESS_NM = 300.0
"""Gain of the servos whose commands are recorded for `servos`, N m/rad."""
PEAK_MEMORY = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, usage.ru_maxrss / 1000, usage.ru_utime + usage.ru_stime)
"""
"""Program that measures a command. A process inherits the peak memory of its parent, so this small program starts
the command."""
SHARED_OPTIONS = ("--urdf", "arm.urdf", "--recording", "run.npz")
MODEL_OPTIONS = (*SHARED_OPTIONS, "--model", "out/identified.yaml")
COMMANDS = {
    "check": ("check", *SHARED_OPTIONS),
    "links": ("identify", "links", *SHARED_OPTIONS, "--output", "out"),
    "validate": ("validate", *MODEL_OPTIONS, "--output", "predicted.csv"),
    "load": ("identify", "load", *MODEL_OPTIONS, "--output", "load"),
    "export": ("export", *MODEL_OPTIONS, "--to", "c", "--output", "model"),
    "gravity": (
        *("identify", "gravity", *SHARED_OPTIONS, "--output", "gravity"),
        *("--samples", "slow", "--slow-velocity", "5", "--slow-acceleration", "50"),
    ),
    "servos": ("identify", "servos", "--urdf", "arm.urdf", "--recording", "servos.npz", "--output", "servos"),
}


def urdf() -> str:
    """Return the URDF of an arm whose joints turn about z and y by turns, with lighter links towards its tip."""
    parts = ['<robot name="seven_joints"><link name="link_0"/>']
    for j in range(1, N_JOINTS + 1):
        scale = LIGHTER_PER_LINK**j
        parts.append(
            f'<joint name="joint_{j}" type="revolute"><parent link="link_{j - 1}"/><child link="link_{j}"/>'
            f'<origin xyz="0 0 {LINK_LENGTH_M}" rpy="0 0 0"/><axis xyz="{"0 0 1" if j % 2 else "0 1 0"}"/>'
            '<limit lower="-2.9" upper="2.9" velocity="3" effort="300"/></joint>'
            f'<link name="link_{j}"><inertial><origin xyz="0.01 0.02 {LINK_LENGTH_M / 2}"/><mass value="{6 * scale}"/>'
            f'<inertia ixx="{0.05 * scale}" iyy="{0.04 * scale}" izz="{0.03 * scale}" ixy="0.001" ixz="0" iyz="0"/>'
            "</inertial></link>"
        )
    return "".join([*parts, "</robot>"])


def write_recording(robot: RobotModel, seconds: float, rate: float, path: Path, *, of_servos: bool = False) -> None:
    """Write a recording of all joints in sums of sines, with friction and noise; of servos with their commands."""
    rng = np.random.default_rng(0)
    time = np.arange(round(seconds * rate)) / rate
    shape = (SINES, 1, robot.n_joints)
    frequency = 2 * np.pi * rng.uniform(*FREQUENCY_RANGE_HZ, shape)
    amplitude = rng.uniform(*AMPLITUDE_RANGE_RAD, shape)
    phase = rng.uniform(0, 2 * np.pi, shape)
    position, velocity, torque = (np.empty((len(time), robot.n_joints)) for _ in range(3))
    for rows in blocks(len(time)):
        angle = frequency * time[rows, None] + phase
        q, qd, qdd = ((amplitude * frequency**k * np.sin(angle + k * np.pi / 2)).sum(axis=0) for k in range(3))
        friction = np.tanh(qd / 0.02) + 0.5 * qd
        position[rows] = q + ENCODER_NOISE_RAD * rng.standard_normal(q.shape)
        velocity[rows] = qd
        torque[rows] = robot.inverse_dynamics(q, qd, qdd) + friction + TORQUE_NOISE_NM * rng.standard_normal(q.shape)
    command = CommandSeries(time, position + torque / SERVO_STIFFNESS_NM) if of_servos else None
    Recording(robot.joint_names, time, position, velocity, torque, command=command).write_npz(path)


def measure(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Return peak memory, MB, and processor time, s, of a command that runs in a folder.

    Raises:
        RuntimeError: the command failed.
    """
    program = (sys.executable, "-c", PEAK_MEMORY, sys.executable, "-m", "dynid_ros", *command)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    code, memory, seconds = done.stdout.split()
    if code != "0":
        raise RuntimeError(f"dynid {' '.join(command)} ended with {code}:\n{done.stderr}")
    return float(memory), float(seconds)


def main() -> None:
    """Print a row for each duration and command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5, 20, 60])
    parser.add_argument("--rate", type=float, default=1000.0, help="samples per second (%(default)g)")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=["check", "links"])
    options = parser.parse_args()
    print(f"{'minutes':>8} {'command':10} {'peak MB':>8} {'CPU s':>8}", flush=True)
    for minutes in options.minutes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "arm.urdf").write_text(urdf())
            # The arrays of the recording must not be part of this program's memory when it starts the commands.
            robot = RobotModel.from_urdf(folder / "arm.urdf")
            write_recording(robot, 60 * minutes, options.rate, folder / "run.npz")
            if "servos" in options.commands:
                write_recording(robot, 60 * minutes, options.rate, folder / "servos.npz", of_servos=True)
            for title in options.commands:
                memory, seconds = measure(COMMANDS[title], folder)
                print(f"{minutes:8g} {title:10} {memory:8.0f} {seconds:8.1f}", flush=True)


if __name__ == "__main__":
    main()
