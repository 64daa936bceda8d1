"""Accuracy and coverage of gravity identification on the simulated demo arm, with MuJoCo's dynamics.

    python benchmarks/gravity_accuracy.py [--repetitions 300] [--motions 6] [--gain-error 0.01]

Each repetition has its own sensor offsets, noise and, with `--gain-error`, torque sensor gains, whose standard
deviation the identification knows. Each motion has its own friction and its own plan.
"""

import argparse
from dataclasses import replace

import numpy as np
from tqdm import tqdm

from dynid_ros.excitation import StaticRotation
from dynid_ros.identification import GravityIdentification
from dynid_ros.model import RobotModel
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, demo_arm_urdf
from dynid_ros.simulation.replay import measure, simulate
from dynid_ros.trajectories import MotionLimits

ROTOR_INERTIAS = (0.8, 0.8, 0.4, 0.04, 0.04, 0.02)
COULOMB_FRACTION = 0.05
"""Coulomb friction as a fraction of each joint's largest gravity torque."""


def main() -> None:
    """Print the held-out error of each joint and the coverage of the 95 % intervals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--motions", type=int, default=6)
    parser.add_argument("--gain-error", type=float, default=0.0, help="relative standard deviation of the torque gains")
    options = parser.parse_args()
    error, covered = run(options.repetitions, options.motions, options.gain_error)
    percent = "  ".join(f"{100 * e:.3f}" for e in error)
    print(f"held-out static gravity error, RMS in % of the largest gravity torque, joints 2 to 6: {percent}")
    print(f"95 % intervals that hold the truth: {100 * covered.mean():.1f} % of {covered.size}")
    print("per parameter: " + "  ".join(f"{100 * c:.1f}" for c in covered.mean(axis=0)))


def run(repetitions: int, motions: int, gain_error: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors (5,) of joints 2 to 6, and a mask (repetitions, 10) of the intervals with the true value."""
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_urdf(demo_arm_urdf())
    arm_truth = SimulatedArm(robot).truth
    truth = np.einsum("iab,ib->ia", robot.chain.link_offsets[:, :3, :3], arm_truth.gravity_moments())[:, :2].ravel()
    fresh = rng.uniform(robot.limits.lower, robot.limits.upper, (100, 6))
    held_out = arm_truth.gravity_torque(fresh)
    largest = np.abs(held_out).max(axis=0)
    identification = GravityIdentification(robot, torque_gain_error=gain_error)
    squares, covered = [], []
    runs = tqdm(total=repetitions, disable=None)
    for motion in range(motions):
        # joint 1 carries no gravity; its friction is that of a joint of its size
        coulomb = COULOMB_FRACTION * np.maximum(largest, 20.0) * rng.uniform(0.7, 1.3, 6)
        arm = SimulatedArm(robot, drives=Drives(coulomb=coulomb, rotor_inertia=ROTOR_INERTIAS), seed=motion)
        limits = MotionLimits.of(robot, 6.0)
        plan = StaticRotation(robot, limits, steps=7 + motion % 3, dwell=0.4).plan()
        true = simulate(arm, plan.trajectory)
        for _ in range(repetitions // motions):
            sensors = Sensors.draw(robot.limits.effort, rng, position_noise=2e-5)
            recording = measure(true, sensors, rng)
            gains = 1 + gain_error * rng.normal(size=robot.n_joints) if gain_error else 1.0
            result = identification.fit(replace(recording, torque=recording.torque * gains))
            low, high = result.confidence_intervals(0.95)[2:].T
            covered.append((low <= truth[2:]) & (truth[2:] <= high))
            squares.append(np.mean((result.predict(fresh) - held_out) ** 2, axis=0))
            runs.update()
    runs.close()
    return np.sqrt(np.mean(squares, axis=0))[1:] / largest[1:], np.array(covered)


if __name__ == "__main__":
    main()
