"""Exported C beside Pinocchio's C++: difference and time of a call, on chains of example-robot-data.

    python -m benchmarks.exported_c [--robots 20] [--states 10000] [--eigen DIR]

Each robot's longest chain of joints is exported, compiled (-std=c99 -Wall -Wextra -Werror -pedantic -O2; any warning
ends the run) and called from one C++ program (`exported_c.cpp`) that calls Pinocchio on the same states, medians over
rounds. Needs `pip install pin example-robot-data cmeel-eigen` and g++.
"""

import argparse
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pinocchio

from dynid_ros.errors import ModelError
from dynid_ros.export.c_source import c_header, c_source
from dynid_ros.export.exported_arm import ExportedArm
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.model.arm import arm_from_urdf
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.link_tree import LinkTree

PREFIX = next(path for path in (Path(folder) / "cmeel.prefix" for folder in site.getsitepackages()) if path.is_dir())
ROBOTS = PREFIX / "share/example-robot-data/robots"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-shared", "-fPIC")
SOURCE = Path(__file__).with_suffix(".cpp")
ARMS = ("panda", "ur10_robot", "ur5_robot", "ur3_robot", "kinova", "xarm7", "z1", "so101", "talos_left_arm")
EXACT, SHARE = 1e-10, 0.3


def chains(count: int) -> Iterator[RobotModel]:
    """Arms up to the flange, then the longest chain of other robots, those that no one before is equal to.

    Robots are left out with joints that mimic others with an offset, which Pinocchio holds at zero.
    """
    seen: set[tuple] = set()
    for path in sorted(ROBOTS.rglob("*.urdf"), key=lambda path: (path.stem not in ARMS, path)):
        text = path.read_text(encoding="utf-8")
        tree = LinkTree(text, path.name)
        if any(joint.mimic and joint.mimic.offset for joint in tree.joints.values()):
            continue
        robots = [arm_from_urdf(text)[0]] if path.stem in ARMS else []
        leaves = [] if robots else [name for name in tree.links if not tree.child_joints[name]]
        for leaf in leaves:
            try:
                robots.append(RobotModel.from_urdf(text, leaf))
            except ModelError:
                continue
        if not robots:
            continue
        robot = max(robots, key=lambda robot: robot.n_joints)
        key = (robot.joint_names, *np.round(robot.parameters, 6))
        if robot.n_joints > 1 and robot.parameters.any() and key not in seen and in_pinocchio(robot):
            seen.add(key)
            yield robot
        if len(seen) == count:
            return


def in_pinocchio(robot: RobotModel) -> pinocchio.Model | None:
    """The chain, joints beside it held where they carry what they do in ours; None: Pinocchio confuses its names."""
    model = pinocchio.buildModelFromXML(robot.urdf)
    others = [model.getJointId(name) for name in model.names[1:] if name not in robot.joint_names]
    try:
        model = pinocchio.buildReducedModel(model, others, pinocchio.neutral(model))
    except ValueError:
        return None
    model.gravity.linear = robot.gravity
    return model if tuple(model.names[1:]) == robot.joint_names else None


def compiled(robot: RobotModel, folder: Path, compiler: str) -> Path:
    """Library of the exported chain."""
    friction = FrictionModel([JointFriction.none()] * robot.n_joints)
    gravity = GravityModel(robot)
    moments = gravity.project(robot.parameters)
    arm = ExportedArm(robot, gravity, moments, robot.parameters, friction, np.empty(0), None, None, "URDF")
    (folder / "arm.h").write_text(c_header(arm, "arm"), encoding="utf-8")
    (folder / "arm.c").write_text(c_source(arm, "arm", "arm.h"), encoding="utf-8")
    done = subprocess.run(
        [*compiler.split(), *STRICT, "arm.c", "-o", "arm.so", "-lm"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or done.stderr:
        raise SystemExit(f"{robot.name}: {compiler} says: {done.stderr}")
    return folder / "arm.so"


def program(folder: Path, eigen: Path) -> Path:
    """The C++ program."""
    target = folder / "exported_c"
    defines = ["-DNDEBUG", "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS"]
    defines.append("-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION")
    command = ["g++", "-O3", "-std=c++17", "-w", *defines, f"-I{PREFIX / 'include'}", f"-I{eigen}", str(SOURCE)]
    command += ["-o", str(target), f"-L{PREFIX / 'lib'}", "-lpinocchio_default", "-lboost_serialization", "-ldl"]
    subprocess.run([*command, f"-Wl,-rpath,{PREFIX / 'lib'}"], check=True)
    return target


def main() -> None:
    """Print a table, and whether all differences are small and the time of seven joints is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=20)
    parser.add_argument("--states", type=int, default=10_000)
    parser.add_argument("--eigen", type=Path, default=PREFIX / "include/eigen3")
    parser.add_argument("--compiler", default="gcc", help="of the exported C")
    arguments = parser.parse_args()
    if not arguments.eigen.is_dir():
        sys.exit(f"{arguments.eigen}: no Eigen there; pip install cmeel-eigen, or give --eigen")
    print(f"{'chain':<28}{'joints':>7}{'difference':>22}{'gravity [ns]':>20}{'':>6}{'dynamics [ns]':>20}")
    print(f"{'':<35}{'gravity':>11}{'dynamics':>11}{'C':>10}{'Pinocchio':>10}{'ratio':>6}{'C':>10}{'Pinocchio':>10}")
    worst, shares = 0.0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        executable = program(folder, arguments.eigen)
        for robot in chains(arguments.robots):
            in_pinocchio(robot).saveToBinary(str(folder / "model"))
            rng = np.random.default_rng(0)
            rng.normal(size=(arguments.states, 3, robot.n_joints)).tofile(folder / "states")
            library = compiled(robot, folder, arguments.compiler)
            command = [executable, library, folder / "model", folder / "states"]
            line = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout
            _, off, dynamics_off, ours, theirs, own_dynamics, their_dynamics = map(float, line.split())
            worst = max(worst, off, dynamics_off)
            shares += [ours / theirs] * (robot.n_joints == 7)
            print(
                f"{robot.name:<28}{robot.n_joints:>7}{off:>11.1e}{dynamics_off:>11.1e}{ours:>10.0f}{theirs:>10.0f}"
                f"{ours / theirs:>6.2f}{own_dynamics:>10.0f}{their_dynamics:>10.0f}"
            )
    print(f"largest difference {worst:.1e} of the largest torque: {'met' if worst <= EXACT else 'NOT MET'}")
    if shares:
        share = max(shares)
        print(f"gravity of 7 joints, share of Pinocchio's: {share:.2f}: {'met' if share <= SHARE else 'NOT MET'}")


if __name__ == "__main__":
    main()
