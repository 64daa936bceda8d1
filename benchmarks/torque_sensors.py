"""Calibration of torque sensors on the simulated demo arm, and detection of their drift; MuJoCo is the truth.

    python -m benchmarks.torque_sensors [--repetitions 40] [--mass 4] [--coverage 300] [--dwells 20000]

Sensors have gain errors of 10 %, offsets of 5 % and noise of 0.5 % of the range; Coulomb friction is 5 % of the maximum
gravity torque. The first part uses MuJoCo's dynamics and the planned motion of `StaticRotation`, without and with a
mass of unknown centre. The second part has the coverage of the 95 % intervals in many quick runs with static torques.
The third part is a long run of the observer.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from dynid_ros.excitation import StaticRotation
from dynid_ros.identification import TorqueSensorCalibration, TorqueSensorResult
from dynid_ros.identification.static_samples import Samples
from dynid_ros.identification.torque_sensors.torque_sensor_observer import TorqueSensorObserver
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, demo_arm_urdf
from dynid_ros.simulation.replay import measure, simulate
from dynid_ros.trajectories import MotionLimits

ROTORS = (0.8, 0.8, 0.4, 0.04, 0.04, 0.02)
ASLANT = (2.0, -1.5, -9.4)
MASS, CENTER = 2.0, np.array([0.06, -0.04, 0.08])
NOISE, GAIN, OFFSET = 0.005, 0.10, 0.05
DWELL_NOISE = NOISE / np.sqrt(50)
"""Noise of the mean of a dwell of 0.2 s at 250 Hz."""
FRICTION = 0.05


@dataclass
class Errors:
    """Errors of many calibrations: relative gain errors and offset errors by range (runs, n), and covered intervals."""

    gain: list[NDArray]
    offset: list[NDArray]
    covered: list[NDArray]

    def add(self, result: TorqueSensorResult, gain: NDArray, offset: NDArray, size: NDArray) -> None:
        """Add the errors of a result."""
        self.gain.append(result.gain / gain - 1)
        self.offset.append((result.offset - offset) / size)
        truth, n = np.concatenate([gain, offset]), len(gain)
        low, high = result.confidence_intervals()[: 2 * n].T
        self.covered.append(np.where(np.isfinite(low), (low <= truth) & (truth <= high), np.nan))

    def print_summary(self, name: str) -> None:
        """Print RMS and largest error per joint, in per cent, and the coverage."""
        for label, errors in (("gain, % of it", self.gain), ("offset, % of range", self.offset)):
            values = 100 * np.array(errors)
            rms, worst = np.sqrt(np.mean(values**2, axis=0)), np.abs(values).max(axis=0)
            cells = "  ".join(
                "not determined" if np.isnan(r) else f"{r:.3f} ({w:.3f})" for r, w in zip(rms, worst, strict=True)
            )
            print(f"{name}, {label}, RMS (worst): {cells}")
        covered = np.array(self.covered)
        print(
            f"{name}, 95 % intervals that hold the truth: {100 * np.nanmean(covered):.1f} % "
            f"of {np.isfinite(covered).sum()}"
        )


def main() -> None:
    """Print the results of all three parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--mass", type=float, default=4.0, help="mass of the first part, kg")
    parser.add_argument("--coverage", type=int, default=300)
    parser.add_argument("--dwells", type=int, default=20_000)
    options = parser.parse_args()
    if options.repetitions:
        for name, errors in dynamic(options.repetitions, options.mass).items():
            errors.print_summary(f"MuJoCo's dynamics, {name}")
    for case in ("mass", "gravity", "positions") if options.coverage else ():
        static(case, options.coverage).print_summary(f"static torques, {case}")
    if options.dwells:
        watch(options.dwells)


def motions(mass: float) -> tuple[RobotModel, Recording, Recording]:
    """Return the demo arm, and its true motion through the planned rotations without and with the mass."""
    robot = RobotModel.from_urdf(demo_arm_urdf())
    largest = np.abs(robot.gravity_torque(np.random.default_rng(0).uniform(-2, 2, (500, 6)))).max(axis=0)
    drives = Drives(coulomb=FRICTION * np.maximum(largest, 20.0), rotor_inertia=ROTORS)
    arm = SimulatedArm(robot, drives=drives)
    # Slow motion: the servo does not know the mass, and the arm swings where it stops.
    experiment = StaticRotation(
        robot, MotionLimits.of(robot, 6.0), steps=6, dwell=1.0, poses_per_joint=2, speed_fraction=0.25
    )
    plan = experiment.plan()
    plain = simulate(arm, plan.trajectory)
    inertia = mass * (CENTER @ CENTER * np.eye(3) - np.outer(CENTER, CENTER)) + 2e-3 * np.eye(3)
    arm.attach_load(np.concatenate([[mass], mass * CENTER, inertia[np.triu_indices(3)]]))
    return robot, plain, simulate(arm, plan.trajectory)


def dynamic(repetitions: int, mass: float, seed: int = 0) -> dict[str, Errors]:
    """Calibrate with the mass, which also determines gravity, and without it after a drift of all sensors."""
    rng = np.random.default_rng(seed)
    robot, plain, carrying = motions(mass)
    size = robot.limits.effort
    exact = KnownGravity.of_urdf(robot)
    names = ("mass, centre unknown", "gravity known exactly", "gravity of that calibration, then drift of all sensors")
    errors_by_case = {name: Errors([], [], []) for name in names}
    for _ in tqdm(range(repetitions), disable=None):
        first, later = (draw(size, rng) for _ in range(2))
        result = TorqueSensorCalibration(robot, reference_mass=mass).fit(
            measure(plain, first, rng), measure(carrying, first, rng)
        )
        errors_by_case[names[0]].add(result, 1 / (1 + first.torque_gain_error), first.torque_offset, size)
        gravity = KnownGravity.of_document(result.document(), robot)
        repeated = measure(plain, later, rng)
        for name, moments in zip(names[1:], (exact, gravity), strict=True):
            without = TorqueSensorCalibration(robot, gravity=moments).fit(repeated)
            errors_by_case[name].add(without, 1 / (1 + later.torque_gain_error), later.torque_offset, size)
    return errors_by_case


def draw(size: NDArray, rng: np.random.Generator) -> Sensors:
    """Return sensors with the largest expected errors."""
    return Sensors.draw(
        size, rng, torque_offset=OFFSET, torque_gain_error=GAIN, torque_noise=NOISE, position_noise=2e-5
    )


def statics(
    holds: int = 2, steps: int = 6, gravity: Sequence[float] = ASLANT, joints: Sequence[int] | None = None
) -> tuple[RobotModel, NDArray, NDArray, NDArray, NDArray]:
    """Return the arm, positions (M, n), directions of single rotations, and torques without and with the mass."""
    robot = RobotModel.from_urdf(demo_arm_urdf(), gravity=gravity)
    n = robot.n_joints
    poses, direction = [], []
    for hold in np.random.default_rng(5).uniform(-1.2, 1.2, (holds, n)):
        for joint in range(n) if joints is None else joints:
            angles = np.linspace(-1.5, 1.5, steps)
            turned = np.tile(hold, (2 * steps, 1))
            turned[:, joint] += np.concatenate([angles, angles[::-1]])
            poses.append(turned)
            direction.append(np.tile(np.repeat([1.0, -1.0], steps)[:, None], (1, n)))
    q = np.vstack(poses)
    arm = SimulatedArm(robot)
    plain = arm.truth.gravity_torque(q)
    arm.attach_load(np.concatenate([[MASS], MASS * CENTER, [0.05, 0.0, 0.0, 0.05, 0.0, 0.05]]))
    return robot, q, np.vstack(direction), plain, arm.truth.gravity_torque(q)


def static(case: str, runs: int, seed: int = 1) -> Errors:
    """Return errors of quick runs: "mass" and "positions" with a mass, "gravity" with known moments."""
    rng = np.random.default_rng(seed)
    robot, q, direction, plain, carrying = statics()
    size, n = robot.limits.effort, robot.n_joints
    exact = KnownGravity.of_urdf(robot)
    std = 0.003 * np.abs(exact.moments)
    errors = Errors([], [], [])
    for _ in tqdm(range(runs), disable=None):
        gain, offset = 1 / (1 + rng.choice([-GAIN, GAIN], n)), rng.choice([-OFFSET, OFFSET], n) * size
        turn, zero = np.ones(n), np.zeros(n)
        if case == "positions":
            turn, zero = 1 + rng.uniform(-0.01, 0.01, n), rng.uniform(-0.05, 0.05, n)
        torque = plain if case == "gravity" else np.vstack([plain, carrying])
        times = len(torque) // len(plain)
        side = np.tile(direction, (times, 1))
        readings = (torque + 0.02 * size * side) / gain + offset + rng.normal(0, DWELL_NOISE, side.shape) * size
        samples = dwells((np.tile(q, (times, 1)) - zero) / turn, readings, side)
        loaded = np.arange(len(side)) >= len(plain)
        if case == "gravity":
            rough = KnownGravity(exact.moments + std * rng.normal(0, 1, len(std)), np.diag(std**2))
            calibration = TorqueSensorCalibration(robot, gravity=rough)
        else:
            calibration = TorqueSensorCalibration(robot, reference_mass=MASS, estimate_positions=case == "positions")
        errors.add(calibration.fit_samples(samples, loaded), gain, offset, size)
    return errors


def watch(count: int, rate: float = 1e-3, seed: int = 2) -> None:
    """Print false alarms in a run without drift, and the delay until drifts are detected, at dwells in random poses."""
    rng = np.random.default_rng(seed)
    robot, _, _, _, _ = statics(holds=1)
    q = rng.uniform(-1.5, 1.5, (1000, robot.n_joints))
    torque, size = SimulatedArm(robot).truth.gravity_torque(q), robot.limits.effort
    exact = KnownGravity.of_urdf(robot)
    std = 0.003 * np.abs(exact.moments)

    def work(dwell_count: int, gain: float = 0.0, offset: float = 0.0, start: float = 0.0) -> Samples:
        """Return dwells every 10 s; joint 3 drifts."""
        pose = rng.integers(0, len(q), dwell_count)
        side = rng.choice([-1.0, 1.0], (dwell_count, robot.n_joints))
        readings = torque[pose] + 0.02 * size * side + rng.normal(0, DWELL_NOISE, side.shape) * size
        readings[:, 2] = readings[:, 2] / (1 + gain) + offset * size[2]
        samples = dwells(q[pose], readings, side)
        return replace(samples, time=start + 10.0 * np.arange(dwell_count))

    def observer() -> TorqueSensorObserver:
        rough = KnownGravity(exact.moments + std * rng.normal(0, 1, len(std)), np.diag(std**2))
        return TorqueSensorObserver(robot, rough, false_alarm_rate=rate)

    alarms, runs = 0, max(count // 1000, 1)
    for _ in tqdm(range(runs), disable=None):
        alarms += len(observer().update(work(1000)))
    print(
        f"observer, false alarms in {1000 * runs} dwells without drift: {alarms}; "
        f"at most {rate * 1000 * runs:.0f} stated"
    )
    for quantity, drift in (("gain", {"gain": 0.02}), ("gain", {"gain": 0.05}), ("offset", {"offset": 0.005})):
        delays, dates, named = [], [], 0
        for _ in range(20):
            one = observer()
            one.update(work(200))
            raised = one.update(work(200, **drift, start=2000.0))
            mine = [alarm for alarm in raised if alarm.joint == "joint_3"]
            delays += [(alarm.time - 2000.0) / 10.0 + 1 for alarm in mine]
            final = [alarm for alarm in one.alarms if alarm.joint == "joint_3"]
            dates += [abs(alarm.since - 2000.0) / 10.0 for alarm in final]
            named += sum(alarm.cause == quantity for alarm in final)
        if delays:
            print(
                f"observer, joint 3 drifts, {drift}: found in {len(delays)} of 20 runs, after "
                f"{np.median(delays):.0f} dwells (at most {max(delays):.0f}); dated to within {np.median(dates):.0f} "
                f"dwells (median); cause right in {named}"
            )


def dwells(position: NDArray, readings: NDArray, direction: NDArray) -> Samples:
    """Return the samples of dwells."""
    count = len(position)
    return Samples(
        position=position,
        velocity=np.zeros_like(position),
        torque=readings,
        direction=direction,
        static=np.ones(count, bool),
        time=np.arange(count, dtype=float),
        part=np.zeros(count, int),
    )


if __name__ == "__main__":
    main()
