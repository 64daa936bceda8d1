"""Identify by the printed method of Lightcap and Banks (2007): least squares on eq. 6, then stiffness from eq. 7."""

from dataclasses import dataclass

import numpy as np
from flexible_experiments import Experiment
from lightcap_regressors import regressor_without_stiffness
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.signals import LowPass, filtered_motion

RATE = 250.0


@dataclass(frozen=True)
class Printed:
    """Estimates: base parameters (r,) of the links, the others (n,)."""

    links: NDArray
    coulomb: NDArray
    viscous: NDArray
    stiffness: NDArray
    motor_inertia: NDArray
    motor_viscous: NDArray


def printed_method(experiment: Experiment, cutoff: float) -> Printed:
    """Return estimates with an equal low-pass with `cutoff` in Hz of columns and torque, and aligned clocks."""
    low_pass = LowPass(cutoff, RATE)
    link_time = experiment.link_time + experiment.clock_offset
    link_position = CubicSpline(link_time, experiment.link)(np.clip(experiment.time, link_time[0], link_time[-1]))
    link, motor = (filtered_motion(position, low_pass) for position in (link_position, experiment.motor))
    inner = slice(low_pass.edge, -low_pass.edge)
    n = experiment.motor.shape[1]
    regressor = regressor_without_stiffness(experiment.robot, link, motor)
    rows = low_pass.filter(regressor)[inner]
    torque = low_pass.filter(experiment.torque)[inner]
    solution = np.linalg.lstsq(rows.reshape(-1, rows.shape[2]), torque.reshape(-1), rcond=None)[0]
    links = solution[: -4 * n]
    drives = solution[-4 * n :].reshape(4, n)
    through = rows[:, :, : -2 * n] @ solution[: -2 * n]
    deflection = low_pass.filter(motor.position - link.position)[inner]
    deflection = deflection - deflection.mean(axis=0)
    through = through - through.mean(axis=0)
    stiffness = (deflection * through).sum(axis=0) / (deflection**2).sum(axis=0)
    return Printed(links, drives[0], drives[1], stiffness, drives[2], drives[3])
