"""Rehearsals of ten public arms that no test uses: results of `dynid rehearse`.

    python -m benchmarks.rehearsals [--only cr5 rm_75] [--robots FOLDER] [--seed 0] [--keep FOLDER]

`--robots` (default: the current folder) holds clones of three repositories; missing robots are left out:

    git clone https://github.com/AuboRobot/aubo_robot
    git clone https://github.com/Dobot-Arm/DOBOT_6Axis_ROS2_V4
    git clone https://github.com/RealManRobot/ros2_rm_robot

The other URDFs come with `pip install example-robot-data`. AUBO's and Dobot's URDFs have no velocity limits: 2 rad/s.
Columns: exit code of the command; gravity error of the worst joint, relative to its largest torque; error of held-out
torque, relative to its RMS, of the identified model and of the URDF; error of the load's mass; 95 % intervals that
contain the true value; number of base parameters with more than 25 % uncertainty; seconds.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dynid_ros.cli import main as command

EXAMPLES = "cmeel.prefix/share/example-robot-data/robots"
SPEED = ("--velocity-limits", "2")


@dataclass(frozen=True)
class Arm:
    """An arm: its URDF in a clone or in example-robot-data, the folder of its meshes' packages, and options."""

    urdf: str
    meshes: str = ""
    options: tuple[str, ...] = ()


ARMS = {
    "aubo_i5": Arm("aubo_robot/aubo_description/urdf/aubo_i5.urdf", "aubo_robot", SPEED),
    "aubo_i10": Arm("aubo_robot/aubo_description/urdf/aubo_i10.urdf", "aubo_robot", SPEED),
    "cr5": Arm("DOBOT_6Axis_ROS2_V4/dobot_rviz/urdf/cr5_robot.urdf", "DOBOT_6Axis_ROS2_V4", SPEED),
    "cr10af": Arm("DOBOT_6Axis_ROS2_V4/dobot_rviz/urdf/cr10af_robot.urdf", "DOBOT_6Axis_ROS2_V4", SPEED),
    "nova2": Arm("DOBOT_6Axis_ROS2_V4/dobot_rviz/urdf/nova2_robot.urdf", "DOBOT_6Axis_ROS2_V4", SPEED),
    "rm_75": Arm("ros2_rm_robot/rm_description/urdf/rm_75.urdf", "ros2_rm_robot"),
    "rm_gen72": Arm("ros2_rm_robot/rm_description/urdf/rm_gen72.urdf", "ros2_rm_robot"),
    "so100": Arm(f"{EXAMPLES}/so_arm_description/urdf/so100.urdf"),
    "tiago_dual, left arm": Arm(
        f"{EXAMPLES}/tiago_description/robots/tiago_dual.urdf",
        options=("--base", "torso_lift_link", "--tip", "arm_left_tool_link", "--floor-height", "-inf"),
    ),
    "alex, left arm": Arm(
        f"{EXAMPLES}/alex_description/urdf/alex_sake_hands.urdf",
        options=(
            *("--base", "Torso", "--tip", "LeftGripperYawLink", "--floor-height", "-inf", "--allowed-pairs"),
            "LeftWristYawLink:LeftShoulderYawLink,LeftWristRollLink:LeftShoulderYawLink",
        ),
    ),
}


def find(path: str, robots: Path) -> Path | None:
    """Return a file of a clone or of an installed package, or None."""
    places = [robots / path, *(Path(folder) / path for folder in sys.path)]
    return next((place for place in places if place.is_file()), None)


def rehearse(arm: Arm, urdf: Path, robots: Path, output: Path, options: list[str]) -> dict:
    """Return the document of the command."""
    words = ["rehearse", "--urdf", str(urdf), "--output", str(output), *arm.options, *options, "--json"]
    if arm.meshes:
        words += ["--mesh-directory", str(robots / arm.meshes)]
    answer = io.StringIO()
    errors = io.StringIO()
    with contextlib.redirect_stdout(answer), contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
        command(words)
    document = json.loads(answer.getvalue())
    output.mkdir(parents=True, exist_ok=True)
    (output / "answer.json").write_text(json.dumps(document, indent=1))
    return document


def row(document: dict) -> list[str]:
    """Return the cells of an arm's row."""
    if "error" in document:
        return [str(document["exit_code"]), document["error"]]

    goals = {goal["label"].partition(" of ")[0]: goal for goal in document["goals"]}
    urdf_errors = document["joints"].get("unseen_torque", {}).get("urdf", {}).values()
    urdf = [error for error in urdf_errors if error is not None]

    def reached(quantity: str) -> str:
        return f"{goals[quantity]['value']:.2g} %" if quantity in goals else "–"

    mass = document["load_mass_error"]
    covered = [sum(of[key] for of in document["intervals"].values()) for key in ("covered", "count")]
    return [
        str(document["exit_code"]),
        reached("gravity torque"),
        reached("unseen torque"),
        f"{100 * max(urdf):.2g} %" if urdf else "–",
        "–" if mass is None else f"{100 * mass:.2g} %",
        "{} of {}".format(*covered),
        str(len(document["weak"])),
        f"{document['seconds']:.0f}",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="arms whose names contain one of these texts")
    parser.add_argument("--robots", type=Path, default=Path(), help="folder of the clones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for all files")
    options = parser.parse_args()
    titles = ("arm", "exit", "gravity", "unseen", "URDF", "load", "intervals", "weak", "s")
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|", flush=True)
    totals = [0, 0]
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        for name, arm in ARMS.items():
            if not any(part in name for part in options.only):
                continue
            urdf = find(arm.urdf, options.robots)
            if urdf is None:
                print(f"| {name} | {arm.urdf} is missing |", flush=True)
                continue
            output = (options.keep or Path(folder)) / name.replace(", ", "_").replace(" ", "_")
            document = rehearse(arm, urdf, options.robots, output, ["--seed", str(options.seed)])
            print(f"| {name} | {' | '.join(row(document))} |", flush=True)
            missed += [f"{name}: {text}" for text in document.get("missing", ())]
            for of in document.get("intervals", {}).values():
                totals = [totals[0] + of["covered"], totals[1] + of["count"]]
    print(f"intervals: {totals[0]} of {totals[1]} contain the truth, {totals[0] / max(totals[1], 1):.1%}")
    print("\n".join(missed))


if __name__ == "__main__":
    main()
