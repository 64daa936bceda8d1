"""Exported C code against Pinocchio's C++: difference and time of a call, on chains of example-robot-data.

    python -m benchmarks.exported_c [--robots 20] [--states 10000] [--eigen DIR]

Each robot's longest chain of joints is exported and compiled (-std=c99 -Wall -Wextra -Werror -pedantic -O2; any warning
ends the run). One C++ program (`exported_c.cpp`) calls it and Pinocchio on the same states; times are medians over
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
C_FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-shared", "-fPIC")
SOURCE = Path(__file__).with_suffix(".cpp")
ARMS = ("panda", "ur10_robot", "ur5_robot", "ur3_robot", "kinova", "xarm7", "z1", "so101", "talos_left_arm")
MAX_DIFFERENCE = 1e-10
MAX_TIME_RATIO = 0.3


def chains(count: int) -> Iterator[RobotModel]:
    """Yield the arms up to their flange, then the longest chain of each other robot; duplicates are left out.

    Robots whose joints mimic others with an offset are left out, because Pinocchio holds such joints at zero.
    """
    yielded: set[tuple] = set()
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
        if robot.n_joints > 1 and robot.parameters.any() and key not in yielded and pinocchio_model(robot):
            yielded.add(key)
            yield robot
        if len(yielded) == count:
            return


def pinocchio_model(robot: RobotModel) -> pinocchio.Model | None:
    """Return the chain with all other joints locked, or None if Pinocchio mixes up its joint names."""
    model = pinocchio.buildModelFromXML(robot.urdf)
    others = [model.getJointId(name) for name in model.names[1:] if name not in robot.joint_names]
    try:
        model = pinocchio.buildReducedModel(model, others, pinocchio.neutral(model))
    except ValueError:
        return None
    model.gravity.linear = robot.gravity
    return model if tuple(model.names[1:]) == robot.joint_names else None


def compile_chain(robot: RobotModel, folder: Path, compiler: str) -> Path:
    """Return the path of the compiled library of a chain."""
    friction = FrictionModel([JointFriction.none()] * robot.n_joints)
    gravity = GravityModel(robot)
    moments = gravity.project(robot.parameters)
    arm = ExportedArm(robot, gravity, moments, robot.parameters, friction, np.empty(0), None, None, "URDF")
    (folder / "arm.h").write_text(c_header(arm, "arm"), encoding="utf-8")
    (folder / "arm.c").write_text(c_source(arm, "arm", "arm.h"), encoding="utf-8")
    compilation = subprocess.run(
        [*compiler.split(), *C_FLAGS, "arm.c", "-o", "arm.so", "-lm"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if compilation.returncode or compilation.stderr:
        raise SystemExit(f"{robot.name}: {compiler} reports: {compilation.stderr}")
    return folder / "arm.so"


def compile_program(folder: Path, eigen: Path) -> Path:
    """Return the path of the compiled C++ program."""
    target = folder / "exported_c"
    defines = ["-DNDEBUG", "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS"]
    defines.append("-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION")
    command = ["g++", "-O3", "-std=c++17", "-w", *defines, f"-I{PREFIX / 'include'}", f"-I{eigen}", str(SOURCE)]
    command += ["-o", str(target), f"-L{PREFIX / 'lib'}", "-lpinocchio_default", "-lboost_serialization", "-ldl"]
    subprocess.run([*command, f"-Wl,-rpath,{PREFIX / 'lib'}"], check=True)
    return target


def main() -> None:
    """Print the table, and whether the differences and the time for seven joints meet their goals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=20)
    parser.add_argument("--states", type=int, default=10_000)
    parser.add_argument("--eigen", type=Path, default=PREFIX / "include/eigen3")
    parser.add_argument("--compiler", default="gcc", help="compiler of the exported C")
    arguments = parser.parse_args()
    if not arguments.eigen.is_dir():
        sys.exit(f"{arguments.eigen} does not contain Eigen: run `pip install cmeel-eigen`, or give --eigen")
    print(f"{'chain':<28}{'joints':>7}{'difference':>22}{'gravity [ns]':>20}{'':>6}{'dynamics [ns]':>20}")
    print(f"{'':<35}{'gravity':>11}{'dynamics':>11}{'C':>10}{'Pinocchio':>10}{'ratio':>6}{'C':>10}{'Pinocchio':>10}")
    worst = 0.0
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        executable = compile_program(folder, arguments.eigen)
        for robot in chains(arguments.robots):
            pinocchio_model(robot).saveToBinary(str(folder / "model"))
            rng = np.random.default_rng(0)
            rng.normal(size=(arguments.states, 3, robot.n_joints)).tofile(folder / "states")
            library = compile_chain(robot, folder, arguments.compiler)
            command = [executable, library, folder / "model", folder / "states"]
            line = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout
            _, difference, dynamics_difference, ours, theirs, own_dynamics, their_dynamics = map(float, line.split())
            worst = max(worst, difference, dynamics_difference)
            if robot.n_joints == 7:
                ratios.append(ours / theirs)
            print(
                f"{robot.name:<28}{robot.n_joints:>7}{difference:>11.1e}{dynamics_difference:>11.1e}{ours:>10.0f}{theirs:>10.0f}"
                f"{ours / theirs:>6.2f}{own_dynamics:>10.0f}{their_dynamics:>10.0f}"
            )
    print(f"largest difference {worst:.1e} of the largest torque: {'met' if worst <= MAX_DIFFERENCE else 'NOT MET'}")
    if ratios:
        ratio = max(ratios)
        print(
            f"gravity of 7 joints, share of Pinocchio's: {ratio:.2f}: {'met' if ratio <= MAX_TIME_RATIO else 'NOT MET'}"
        )


if __name__ == "__main__":
    main()
