"""Robots with branches and mimic joints: links, gravity and its compensation, with the commands only.

    python -m benchmarks.trees [--only baxter] [--seed 0]

The truth is computed by Pinocchio, from a URDF whose inertias differ by up to 30 % from those of the commands;
Pinocchio supports mimic joints itself. Motors add friction, sensors add noise. "inside": base parameters in their 95 %
intervals; "unseen": RMS error of held-out torque, of the worst joint loaded by gravity; "urdf" and "gravity": largest
gravity error in 200 poses, relative to the joint's largest torque, of identified.urdf in Pinocchio and of the
compensation's generated code after `identify gravity` (without the joints of grippers, which gravity hardly loads).

Needs `pip install mujoco pin pytest example-robot-data`.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio
import yaml

from benchmarks.ten_robots import evaluate_expression
from dynid_ros.control import load_gravity_torque
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import parameter_names
from dynid_ros.model.inertia import from_log_cholesky, is_possible, log_cholesky, possible_prior
from dynid_ros.model.urdf_export import urdf_with_inertias
from dynid_ros.recording import Recording

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from pinocchio_arm import example_urdf


@dataclass(frozen=True)
class Case:
    """A robot: its URDF in example-robot-data, the tips of the model, and the positions of held joints."""

    urdf: str
    tip: str
    held: Mapping[str, float] = field(default_factory=dict)


CASES = {
    "baxter, both arms and grippers": Case("baxter_description/urdf/baxter.urdf", "all", {"head_pan": 0.3}),
    "baxter, left arm": Case("baxter_description/urdf/baxter.urdf", "left_gripper"),
    "panda with its fingers": Case("panda_description/urdf/panda.urdf", "panda_leftfinger,panda_rightfinger"),
    "tiago pro, both arms, torso held": Case(
        "tiago_pro_description/robots/tiago_pro.urdf", "arm_left_7_link,arm_right_7_link", {"torso_lift_joint": 0.15}
    ),
}
RATE_HZ = 200.0
DURATION_S = 30.0
HARMONICS = 5
INERTIA_ERROR = 0.3
RELATIVE_NOISE = 0.005
"""Torque noise of each sample, relative to the RMS torque."""
MIN_RELATIVE_GRAVITY = 0.02
"""Smallest gravity torque, relative to the largest of all joints, of a joint that counts as loaded by gravity."""


class Truth:
    """Robot in Pinocchio with other inertias than its URDF."""

    def __init__(self, nominal: RobotModel, folder: Path, rng: np.random.Generator):
        prior, _ = possible_prior(nominal.parameters, nominal.link_names)
        coordinates = log_cholesky(prior.reshape(-1, 10))
        coordinates[:, 0] += 0.5 * np.log(rng.uniform(1 - INERTIA_ERROR, 1 + INERTIA_ERROR, len(coordinates)))
        coordinates[:, 1:4] += 0.5 * np.log(rng.uniform(1 - INERTIA_ERROR, 1 + INERTIA_ERROR, (len(coordinates), 3)))
        self.parameters = from_log_cholesky(coordinates).ravel()
        assert is_possible(self.parameters.reshape(-1, 10)).all()
        self.nominal = nominal
        self.dynamics = Dynamics(nominal, urdf_with_inertias(nominal, self.parameters), folder)
        n = nominal.n_joints
        q = self.random_motion(rng)[0]
        self.scale = np.sqrt(np.mean(self.dynamics.torque(q[::50]) ** 2, axis=0)) + 0.1
        self.friction = self.scale * rng.uniform(0.05, 0.15, (2, n))

    def random_motion(self, rng: np.random.Generator) -> np.ndarray:
        """Return a motion (3, N, n) of sums of sines within the middle of the limits."""
        limits = self.nominal.limits
        lower = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
        upper = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
        t = np.arange(0, DURATION_S, 1 / RATE_HZ)[:, None]
        motion = np.zeros((3, len(t), len(lower)))
        for harmonic in range(1, HARMONICS + 1):
            w = 2 * np.pi * 0.1 * harmonic
            size, phase = rng.normal(size=len(lower)), rng.uniform(0, 2 * np.pi, len(lower))
            motion += size * np.array(
                [np.sin(w * t + phase), w * np.cos(w * t + phase), -(w**2) * np.sin(w * t + phase)]
            )
        speed = np.where(limits.velocity > 0, 0.8 * limits.velocity, np.inf)
        reach = 0.4 * np.minimum(upper - lower, 2 * np.pi) / np.abs(motion[0]).max(axis=0)
        motion *= np.minimum(reach, speed / np.abs(motion[1]).max(axis=0))
        motion[0] += (lower + upper) / 2
        return motion

    def static_motion(self, rng: np.random.Generator) -> np.ndarray:
        """Return slow motion (3, N, n) through random poses, approached from both sides, with dwells of 1.2 s."""
        limits = self.nominal.limits
        lower, upper = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
        poses = rng.uniform(lower, upper, (40, len(lower)))
        side = 0.02 * (upper - lower)
        stops = np.clip(
            np.concatenate([[p - side, p] if k % 2 else [p + side, p] for k, p in enumerate(poses)]), lower, upper
        )
        q = [np.repeat(stops[:1], round(1.2 * RATE_HZ), axis=0)]
        blend = np.linspace(0, 1, round(1.5 * RATE_HZ))[:, None]
        blend = blend**3 * (10 - 15 * blend + 6 * blend**2)
        for a, b in pairwise(stops):
            q += [a + (b - a) * blend, np.repeat(b[None], round(1.2 * RATE_HZ), axis=0)]
        q = np.concatenate(q)
        qd = np.gradient(q, 1 / RATE_HZ, axis=0)
        return np.array([q, qd, np.gradient(qd, 1 / RATE_HZ, axis=0)])

    def record(self, path: Path, motion: np.ndarray, rng: np.random.Generator) -> Path:
        """Record a motion, and return the path."""
        q, qd, qdd = motion
        coulomb, viscous = self.friction
        direction = np.tanh(qd / 1e-3)
        torque = self.dynamics.torque(q, qd, qdd) + coulomb * direction + viscous * qd
        if not qd[0].any():  # a joint at rest keeps the friction of its last motion
            last = np.zeros(q.shape[1])
            for k, row in enumerate(qd):
                last = np.where(np.abs(row) > 1e-4, np.sign(row), last)
                torque[k] += coulomb * (last - direction[k]) * (np.abs(row) <= 1e-4)
        torque += RELATIVE_NOISE * self.scale * rng.normal(size=q.shape)
        q = q + 2e-5 * rng.normal(size=q.shape)
        Recording(self.nominal.joint_names, np.arange(len(q)) / RATE_HZ, q, qd, torque).write_npz(path)
        return path


class Dynamics:
    """Dynamics of a URDF in Pinocchio; mimic joints follow their masters, held joints are fixed."""

    def __init__(self, robot: RobotModel, urdf: str, folder: Path):
        path = folder / "read_by_pinocchio.urdf"
        path.write_text(urdf)
        whole = pinocchio.buildModelFromUrdf(str(path), mimic=True)
        names = (*robot.chain.mover_names,)
        others = [whole.getJointId(name) for name in whole.names[1:] if name not in names]
        held = pinocchio.neutral(whole)
        for name, position in robot.held.items():
            held[whole.joints[whole.getJointId(name)].idx_q] = position
        self.model = pinocchio.buildReducedModel(whole, others, held)
        self.model.gravity.linear = robot.gravity
        self.data = self.model.createData()
        self.joints = [self.model.joints[self.model.getJointId(name)] for name in robot.joint_names]

    def torque(self, *motion: np.ndarray) -> np.ndarray:
        """Return the torques (N, n) of q, and of qd and qdd if given."""
        q = motion[0]
        still = np.zeros_like(q)
        rows = [joint.idx_v for joint in self.joints]
        torques = []
        for sample in zip(*(motion if len(motion) == 3 else (q, still, still)), strict=True):
            placed = np.zeros(self.model.nq)
            moved = np.zeros((2, self.model.nv))
            for joint, angle in zip(self.joints, sample[0], strict=True):
                placed[joint.idx_q : joint.idx_q + joint.nq] = (
                    [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
                )
            moved[:, rows] = sample[1:]
            torques.append(pinocchio.rnea(self.model, self.data, placed, *moved)[rows])
        return np.array(torques)


def dynid(*words: object) -> None:
    """Run a command; exit with its output if it fails."""
    run = subprocess.run(
        [sys.executable, "-m", "dynid_ros", *map(str, words)], capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"dynid {' '.join(map(str, words))}\n{run.stdout}{run.stderr}")


def row(case: Case, seed: int, folder: Path) -> list[str]:
    """Identify a robot, compare the result with the truth, and return the cells of the row."""
    rng = np.random.default_rng(seed)
    urdf = example_urdf(case.urdf)
    nominal = RobotModel.from_urdf(urdf, case.tip, held=case.held)
    truth = Truth(nominal, folder, rng)
    arm = ["--urdf", urdf, "--tip", case.tip, *(f"--hold={joint}={at}" for joint, at in case.held.items())]
    fitted = [truth.record(folder / f"fit_{k}.npz", truth.random_motion(rng), rng) for k in range(2)]
    unseen = truth.record(folder / "unseen.npz", truth.random_motion(rng), rng)
    static = truth.record(folder / "static.npz", truth.static_motion(rng), rng)
    start = time.monotonic()
    recordings = [word for path in fitted for word in ("--recording", path)]
    dynid("identify", "links", *arm, *recordings, "--validate", unseen, "--output", folder / "links")
    took = time.monotonic() - start
    dynid("identify", "gravity", *arm, "--recording", static, "--output", folder / "gravity")

    document = yaml.safe_load((folder / "links" / "identified.yaml").read_text())
    true = dict(zip(parameter_names(nominal), truth.parameters, strict=True))
    base = [entry for entry in document["base_parameters"] if entry.get("std") is not None]
    errors = np.array([entry["value"] - evaluate_expression(entry["expression"], true) for entry in base])
    std = np.array([entry["std"] for entry in base])
    finite = np.isfinite(errors)
    inside = np.abs(errors[finite]) <= 1.96 * std[finite]
    q = np.array([truth.random_motion(rng)[0][k] for k in rng.integers(0, 1000, 200)])
    gravity = truth.dynamics.torque(q)
    largest = np.abs(gravity).max(axis=0)
    loaded = largest > MIN_RELATIVE_GRAVITY * largest.max()
    relative_rms = document["validation"][0]["relative_rms"]
    worst = max(relative_rms[name] for name, is_loaded in zip(nominal.joint_names, loaded, strict=True) if is_loaded)
    by_urdf = Dynamics(nominal, (folder / "links" / "identified.urdf").read_text(), folder).torque(q)
    _, compensation = load_gravity_torque(folder / "gravity" / "identified.yaml", str(urdf))
    by_code = np.array([compensation(sample.tolist()) for sample in q])
    errors_percent = [
        100 * (np.abs(torque - gravity).max(axis=0) / largest)[loaded].max() for torque in (by_urdf, by_code)
    ]
    return [
        f"{nominal.n_joints} / {nominal.n_links}",
        f"{inside.sum()} of {finite.sum()}",
        f"{100 * worst:.2f} %",
        *(f"{error:.2f} %" for error in errors_percent),
        f"{took:.0f} s",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="text that the robot's name contains")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| robot | joints / links | inside | unseen | urdf | gravity | links took |\n|---|---|---|---|---|---|---|")
    for name, case in CASES.items():
        if options.only in name:
            with tempfile.TemporaryDirectory() as folder:
                print(f"| {name} | {' | '.join(row(case, options.seed, Path(folder)))} |", flush=True)


if __name__ == "__main__":
    main()
