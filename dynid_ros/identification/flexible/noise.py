"""How noisy measured links and motors are at every frequency, and what makes their residuals white."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.flexible.joint_parameters import Layout
from dynid_ros.identification.flexible.run import Run
from dynid_ros.identification.flexible.run_residuals import Channel

SMOOTHING = (6, 0.1)
"""Frequencies to either side over which a density is averaged, and at least this share of their number."""
LEAST_DENSITY = 1e-6
"""Of noise, in parts of its mean."""


def whiteners(layout: Layout, values: NDArray, run: Run, channels: Sequence[Channel]) -> dict[int, NDArray]:
    """For each joint (F, c, c) matrices that make the noise of its c channels white and of variance one.

    The density of noise is the residuals' own, averaged over neighbouring frequencies. It is one matrix for link and
    motor together: the noise of a motor's encoder, which the prediction starts from, is in the residuals of both. Of
    periodic motors it is there at the lines of their motion only, where too few frequencies are averaged to show it:
    there it follows from the noise of the encoder and the response of the joint.
    """
    found = {}
    for joint in sorted({channel.joint for channel in channels}):
        own = [channel for channel in channels if channel.joint == joint]
        spectra = np.stack([channel.residual for channel in own], axis=1)
        counted = np.ones(len(spectra))
        if len(run.lines):
            # Errors of the model gather at the lines, and are none of the noise.
            every = np.arange(len(spectra))[:, None]
            counted[(np.abs(every - run.lines) <= 1).any(axis=1)] = 0.0
        density = _averaged(spectra, counted)
        density += np.diag(LEAST_DENSITY * np.einsum("fcc->c", density).real / len(density) + 1e-300)
        if len(run.lines):
            passed = np.stack([_response(layout, values, run, joint)[channel.kind] for channel in own], axis=1)
            noise = run.motor_noise[joint] ** 2
            density[run.lines] += noise * passed[:, :, None] * passed[:, None, :].conj()
        found[joint] = np.linalg.inv(np.linalg.cholesky(density))
    return found


def _averaged(spectra: NDArray, counted: NDArray) -> NDArray:
    """(F, c, c) products of the spectra (F, c), averaged over neighbours that count (F,)."""
    power = spectra[:, :, None] * spectra[:, None, :].conj() * counted[:, None, None]
    bins = np.arange(len(power))
    half = np.maximum(SMOOTHING[0], SMOOTHING[1] * bins).astype(int)
    while True:
        first, last = np.maximum(bins - half, 0), np.minimum(bins + half + 1, len(power))
        numbers = np.concatenate([[0.0], np.cumsum(counted)])
        count = numbers[last] - numbers[first]
        few = (count < SMOOTHING[0]) & (last - first < len(power))
        if not few.any():
            break
        half = np.where(few, 2 * half, half)
    total = np.concatenate([np.zeros((1, *power.shape[1:])), np.cumsum(power, axis=0)])
    return (total[last] - total[first]) / np.maximum(count, 1.0)[:, None, None]


def _response(layout: Layout, values: NDArray, run: Run, joint: int) -> dict[str, NDArray]:
    """What a joint's link and the torque of its motor are by the motor's position, at the lines; other joints rigid."""
    robot, parameters = layout.robot, layout.unpack(values)
    n = robot.n_joints
    pose = np.tile(np.mean(run.motor.position, axis=0), (n, 1))
    moved = robot.torque_regressor(pose, np.zeros((n, n)), np.eye(n)) - robot.gravity_regressor(pose)
    inertia = float(layout.base.reduce(moved)[joint, joint] @ parameters.links)
    turns = 2j * np.pi * run.lines / (run.step * (run.window.stop - run.window.start))
    stiffness = float(values[layout.index("stiffness")[joint]])
    link = stiffness / (stiffness + turns * parameters.viscous[joint] + turns**2 * inertia)
    motor = stiffness * (1.0 - link)
    for term, power in (("motor_viscous", 1), ("motor_inertia", 2)):
        if term in parameters.motors:
            motor = motor + turns**power * parameters.motors[term][joint]
    return {"link": link, "motor": motor}
