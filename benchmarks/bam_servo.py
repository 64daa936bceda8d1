"""Servo identification on a real servo: torque-free prediction of unseen motion, compared with ordinary least squares.

    git clone https://github.com/Rhoban/bam; git -C bam checkout d13c057
    python -m benchmarks.bam_servo bam/data_raw_feetech/2024-10-26_12h23m27.json bam/.../2024-10-26_12h27m27.json

The recordings of Rhoban's BAM (Apache-2.0) show a Feetech STS3250 that swings 1.13 kg on a lever of 0.12 m: set-points
and positions at 48 Hz, 6 s each. Each file is fitted in turn and all others are predicted. Least squares solves the
equation of motion with the best command delay of a grid, without simulating the servo.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from dynid_ros.identification import ServoIdentification
from dynid_ros.identification.servo.closed_loop import ClosedLoops
from dynid_ros.model import RobotModel
from dynid_ros.recording import CommandSeries, Recording

URDF = """<robot name="lever"><link name="base"/><link name="arm"><inertial><mass value="{mass}"/>
<origin xyz="0 0 -{length}"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="servo" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit lower="-4" upper="4" velocity="8" effort="9"/></joint></robot>"""


def read(path: Path) -> tuple[Recording, RobotModel]:
    """Return the recording of a file while the servo was on, and the model of its lever."""
    document = json.loads(path.read_text(encoding="utf-8"))
    entries = [entry for entry in document["entries"] if entry["torque_enable"]]
    time = np.array([entry["timestamp"] for entry in entries])
    position = np.array([entry["position"] for entry in entries])
    goal = np.array([entry["goal_position"] for entry in entries])
    unknown = np.full((len(time), 1), np.nan)
    command = CommandSeries(time - time[0], goal[:, None])
    recording = Recording(
        ("servo",), time - time[0], position[:, None], unknown, unknown, source=document["trajectory"], command=command
    )
    return recording, RobotModel.from_urdf(URDF.format(**document))


def main() -> None:
    """Print a row for each pair of fitted and predicted file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="recordings, at least two")
    files = [read(path) for path in parser.parse_args().files]
    print("| fitted | predicted | following error, RMS | output error | least squares |\n|---|---|---|---|---|")
    for fitted, robot in files:
        identification = ServoIdentification(robot)
        result = identification.fit(fitted)
        start, _ = identification._start(result.loops.runs, result.loops.layouts[0], 0)
        for other, _ in files:
            if other is fitted:
                continue
            runs = result._runs(other)
            loops = ClosedLoops(runs, result.loops.layouts, result.loops.step)
            values = next(iter(result.joints.values())).values
            rms = [
                np.sqrt(np.mean((runs[0].position - loops.predict([parameters])[0]) ** 2))
                for parameters in (values, start)
            ]
            following = np.std(runs[0].commands[0].at(runs[0].time) - runs[0].position[:, 0])
            numbers = " | ".join(f"{1e3 * value:.1f} mrad" for value in (following, *rms))
            print(f"| {fitted.source} | {other.source} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
