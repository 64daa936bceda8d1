"""Simulate a load on the demo arm by MuJoCo, for jobs, commands and nodes that identify it."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import load_experiments
import numpy as np
import online_experiment
from scipy.interpolate import CubicSpline

from dynid_ros.identification import LinkIdentification, LinkResult
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, SimulatedArm

CONDITIONS = load_experiments.LoadConditions(arm="demo", rate=100.0, unloaded=10.0, mismatch=0.0)
DWELL, MOVE = 60, 40
"""Samples in a pose, and of the move to the next."""


@cache
def experiment(seed: int = 0, duration: float = 5.0) -> load_experiments.LoadExperiment:
    """Return motions without and with a load of 1 to 3 kg."""
    return load_experiments.draw(replace(CONDITIONS, duration=duration), np.random.default_rng(seed))


@cache
def arm(seed: int = 0) -> LinkResult:
    """Return the identified arm without the load."""
    trial = experiment(seed)
    return LinkIdentification(trial.robot, friction=JointFriction(offset=True), prior_weight=1.0).fit(trial.unloaded)


def record_rests(seed: int = 0, poses: int = 14, turning: tuple[int, ...] = (0, 1, 2, 3, 4, 5)) -> Recording:
    """Return a recording of the load in poses that differ in the joints `turning`."""
    trial = experiment(seed)
    rng = np.random.default_rng(seed)
    goals = rng.uniform(-1.2, 1.2, (poses, trial.robot.n_joints))
    goals[:, [j for j in range(trial.robot.n_joints) if j not in turning]] = 0.3
    way = np.concatenate([np.zeros(DWELL), (1 - np.cos(np.linspace(0, np.pi, MOVE))) / 2])
    start, end = (np.repeat(ends, len(way), axis=0) for ends in (goals, np.roll(goals, -1, axis=0)))
    q = start + np.tile(way, poses)[:, None] * (end - start)
    simulated = SimulatedArm(trial.robot, drives=Drives(0.0, 0.0))
    simulated.attach_load(trial.load)
    torque = simulated.truth.drive_torque(q, np.zeros_like(q), np.zeros_like(q)) + rng.normal(0, 0.05, q.shape)
    return Recording(
        trial.robot.joint_names, 0.01 * np.arange(len(q)), q, np.full_like(q, np.nan), torque, source="rests"
    )


def drive_torque(trial: load_experiments.LoadExperiment, load: np.ndarray | None) -> np.ndarray:
    """Return torques (N, n) of the motion with a load or without, without friction and noise."""
    simulated = SimulatedArm(trial.robot, drives=Drives(0.0, 0.0))
    if load is not None:
        simulated.attach_load(load)
    time = trial.loaded.time
    q, qd, qdd = (CubicSpline(time, trial.loaded.position)(time, order) for order in range(3))
    return simulated.truth.drive_torque(q, qd, qdd)


def record_work(until: float, drop: float = np.inf, rate: float = 100.0, seed: int = 0) -> Recording:
    """Return moves and rests with the load, dropped at time `drop` in s; the arm is the identified one, with noise."""
    trial = experiment(seed)
    model = arm(seed).model
    rng = np.random.default_rng(seed)
    time, q, qd, qdd = online_experiment.moves(trial.robot, until, rate, rng)
    simulated = SimulatedArm(trial.robot, drives=Drives(0.0, 0.0))
    without = simulated.truth.drive_torque(q, qd, qdd)
    simulated.attach_load(trial.load)
    carried = (simulated.truth.drive_torque(q, qd, qdd) - without) * (time < drop)[:, None]
    torque = model.predict(q, qd, qdd) + carried + CONDITIONS.noise * rng.standard_normal(q.shape)
    return Recording(
        trial.robot.joint_names, time, q + 2e-5 * rng.standard_normal(q.shape), qd, torque, source="at work"
    )


def files(folder: Path, seed: int = 0) -> SimpleNamespace:
    """Write URDF, recordings and the arm's identified.yaml, and return their paths."""
    trial = experiment(seed)
    paths = {name: folder / f"{name}.npz" for name in ("unloaded", "loaded", "resting")}
    trial.unloaded.write_npz(paths["unloaded"])
    trial.loaded.write_npz(paths["loaded"])
    record_rests(seed).write_npz(paths["resting"])
    urdf = folder / "arm.urdf"
    urdf.write_text(trial.robot.urdf)
    return SimpleNamespace(urdf=urdf, model=arm(seed).save(folder / "arm.yaml"), **paths)
