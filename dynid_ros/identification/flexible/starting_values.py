"""Where searches start: least squares by steps, the motors' equations first, then the links'; and which start to trust.

u = spring(q_m - q) + J qdd_m + b qd_m does not contain the links' dynamics, so its few unknowns are well determined;
what it leaves, u - J qdd_m - b qd_m, is what the springs pass on to the links (Lightcap and Banks 2007, eqs 1 and 7).
Every column and the torque pass the same low-pass. Equation errors suffer from a clock that is off by milliseconds, as
one aligned by links that lag their motors is. Several clocks are tried, and the links' motion is predicted from each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.flexible_parameters import MOTOR_TERMS, Layout, motor_columns
from dynid_ros.identification.flexible.output_error import OutputError
from dynid_ros.identification.flexible.run_residuals import RunTerms
from dynid_ros.identification.flexible.runs import Run
from dynid_ros.model.friction_direction import FrictionDirection
from dynid_ros.signals import LowPass, Motion, filtered_motion

NOT_LESS = 1e-3
"""Smallest motor inertia, friction and the like that a search starts from, in parts of its scale."""
NOISY = 3.0
"""Ratio of the stiffnesses by regressing torque on deflection and the reverse, above which the deflection is noise."""
MOST = 100.0
"""Largest start of a search, in parts of the smaller of these; its resonance is resolved by the steps as well."""
PRIORS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 1e3)
"""Weights of nominal links, in parts of the runs' information: the smallest that gives links inertia in every pose."""
LEAST_INERTIA = 0.2
"""Smallest inertia about a joint, in parts of the nominal one."""
LEAST_EIGENVALUE = 0.02
"""Smallest eigenvalue of the inertia matrix with ones on its diagonal."""
POSES = 40
SHIFTS = (0.0, 0.007, 0.015)
"""By which clocks of links' sensors are tried, s: links lag their motors, which passes for a clock that is early."""


class Start(NamedTuple):
    """Where a search may start.

    Attributes:
        shift: of the links' clocks, s.
        values: (p,) parameters in the order of the layout.
        worth: the less the better they predict, see `OutputError.left`.
    """

    shift: float
    values: NDArray
    worth: float


def starts(layout: Layout, runs: Sequence[Run], terms: Sequence[RunTerms]) -> list[Start]:
    """Starts with several clocks, where these are not known, the best first.

    Raises:
        IdentificationError: none of them moves.
    """
    found, wrong = [], None
    for shift in SHIFTS if any(own.clock for own in terms) else SHIFTS[:1]:
        moved = shifted(runs, terms, shift)
        try:
            values = LinearSteps(layout, moved).solve()
            found.append(Start(shift, values, OutputError(layout, moved, terms).left(values)))
        except IdentificationError as error:
            wrong = error
    if not found:
        raise wrong or IdentificationError("no start")
    return sorted(found, key=lambda start: start.worth)


def shifted(runs: Sequence[Run], terms: Sequence[RunTerms], shift: float) -> list[Run]:
    """Runs with the links' clocks moved by so much, s, where they are not known."""
    return [replace(run, offset=run.offset + shift * own.clock) for run, own in zip(runs, terms, strict=True)]


class LinearSteps:
    """Columns and torques of runs, filtered alike.

    Args:
        layout: of the parameters.
        runs: with the links' clocks as `Run.offset` has them.
    """

    def __init__(self, layout: Layout, runs: Sequence[Run]) -> None:
        self._layout = layout
        self._parts = [_Part(layout, run) for run in runs]
        self._longest_step = max(run.step / run.parts for run in runs)

    def solve(self) -> NDArray:
        """Parameters (p,) in the order of the layout, in the range of what can be."""
        layout, n = self._layout, self._layout.robot.n_joints
        values = np.zeros(len(layout.names))
        stiffness = layout.index("stiffness")
        passed = [part.torque.copy() for part in self._parts]
        for i in range(n):
            own, springs = self._motor(i)
            values[stiffness[i]] = springs
            for term, value in zip(layout.motor_terms, own, strict=True):
                values[layout.index(term)[i]] = value
            for part, torque in zip(self._parts, passed, strict=True):
                torque[:, i] -= part.motor_terms[:, :, i].T @ own
        values[: layout.n_links + 2 * n] = self._links(passed)
        return values

    def _motor(self, joint: int) -> tuple[NDArray, float]:
        """Terms (t,) of a motor, and the stiffness."""
        rows = [
            np.column_stack([part.deflection[:, joint], part.motor_terms[:, :, joint].T, np.ones(len(part.torque))])
            for part in self._parts
        ]
        torque = np.concatenate([part.torque[:, joint] for part in self._parts])
        matrix = np.concatenate(rows)
        scale = np.linalg.norm(matrix, axis=0) + 1e-300
        # The zero of the link's angle is unknown as well: a constant torque, which is the same column as an offset.
        found = lstsq(matrix / scale, torque, cond=1e-8)[0] / scale
        least = np.sqrt(np.mean(torque**2)) / (np.sqrt(np.mean(matrix[:, 0] ** 2)) + 1e-300)
        stiffness = found[0] if found[0] > NOT_LESS * least else least
        own = found[1:-1]
        # Noise of the deflection draws a stiffness down, that of the torque, which is less, the compliance.
        turned = np.column_stack([torque, matrix[:, 1:]])
        size = np.linalg.norm(turned, axis=0) + 1e-300
        compliance = (lstsq(turned / size, matrix[:, 0], cond=1e-8)[0] / size)[0]
        stiffer = 1 / compliance if compliance > 0 else np.inf
        if stiffer > NOISY * stiffness:
            # As of a rigid joint, whose motor has half of all.
            own = lstsq(matrix[:, 1:] / scale[1:], torque, cond=1e-8)[0][:-1] / scale[1:-1] / 2
            most = MOST * stiffness
            if self._layout.motor_terms[:1] == MOTOR_TERMS[:1] and own[0] > 0:
                most = max(stiffness, min(most, own[0] / self._longest_step**2))
            stiffness = min(stiffer, most)
        for k, term in enumerate(self._layout.motor_terms):
            if term != MOTOR_TERMS[-1]:
                size = np.sqrt(np.mean(matrix[:, 1 + k] ** 2))
                own[k] = max(own[k], NOT_LESS * np.sqrt(np.mean(torque**2)) / size) if size else 0.0
        return own, stiffness

    def _links(self, passed: Sequence[NDArray]) -> NDArray:
        """Links and their friction (r + 2 n,) from the torques that the springs pass on."""
        layout = self._layout
        matrix = np.concatenate([part.links.reshape(-1, part.links.shape[2]) for part in self._parts])
        torque = np.concatenate([values.reshape(-1) for values in passed])
        nominal = np.zeros(matrix.shape[1])
        nominal[: layout.n_links] = layout.base.project(layout.robot.parameters)
        scale = np.linalg.norm(matrix, axis=0)
        scale[scale < 1e-9 * scale.max()] = np.inf
        own = np.arange(matrix.shape[1]) < layout.n_links
        rest = np.concatenate([torque - matrix @ nominal, np.zeros(matrix.shape[1])])
        for weight in PRIORS:
            rows = np.vstack([matrix / scale, np.diag(np.where(own, weight, PRIORS[0]))])
            found = nominal + lstsq(rows, rest)[0] / scale
            if self._moves(found[own]):
                break
        friction = slice(layout.n_links, None)
        speed = np.abs(matrix[:, friction]).sum(axis=0)
        least = NOT_LESS * np.abs(torque).sum() / np.maximum(speed, 1e-300) / len(nominal)
        found[friction] = np.where(speed > 0, np.maximum(found[friction], least), 0.0)
        return found

    def _moves(self, links: NDArray) -> bool:
        """Whether links have positive inertia in the poses of the runs, and not much less than the nominal ones."""
        layout = self._layout
        poses = np.concatenate([part.poses for part in self._parts])
        regressor = layout.inertia_regressor(poses[np.linspace(0, len(poses) - 1, POSES).astype(int)])
        matrices = layout.base.reduce(regressor) @ links
        nominal = regressor @ layout.robot.parameters
        own = np.arange(layout.robot.n_joints)
        least = LEAST_INERTIA * np.maximum(nominal[:, own, own].min(axis=0), 0.0)
        # Scaled, so that light joints count as heavy ones.
        size = np.sqrt(np.maximum(matrices[:, own, own].min(axis=0), 1e-12))
        positive = np.linalg.eigvalsh(matrices / np.outer(size, size)).min() > LEAST_EIGENVALUE
        return bool(positive and (matrices[:, own, own].min(axis=0) > least).all())


class _Part:
    """One run: filtered columns."""

    def __init__(self, layout: Layout, run: Run) -> None:
        low_pass = LowPass(run.band, 1 / run.step)
        link = link_motion(run, low_pass)
        kept = low_pass.kept(len(run.time))
        direction = FrictionDirection(smoothing=1e-3).evaluate
        motors = motor_columns(
            run.motor.velocity, run.motor.acceleration, direction(run.motor.velocity), layout.motor_terms
        )
        regressor = layout.base.reduce(layout.robot.torque_regressor(*link))
        n = run.n_joints
        friction = np.zeros((2, len(run.time), n, n))
        own = np.arange(n)
        friction[0][:, own, own], friction[1][:, own, own] = direction(link.velocity), link.velocity
        self.links = low_pass.filter(np.concatenate([regressor, *friction], axis=2))[kept]
        self.motor_terms = low_pass.filter(motors, axis=1)[:, kept]
        self.deflection = low_pass.filter(run.motor.position - link.position)[kept]
        self.poses = run.motor.position
        self.torque = low_pass.filter(run.torque)[kept]


def link_motion(run: Run, low_pass: LowPass) -> Motion:
    """Motion of the links at the times of the motors, (N, n) each, filtered.

    Raises:
        IdentificationError: no position of a link is known.
    """
    position = np.empty_like(run.torque)
    for i in range(run.n_joints):
        spline = run.link_spline(i)
        if spline is None:
            raise IdentificationError(f"{run.source}: joint number {i + 1} has no link positions")
        inside = np.clip(run.time, spline.x[0], spline.x[-1])
        position[:, i] = run.motor.position[:, i] + (
            spline(inside) - np.interp(inside, run.time, run.motor.position[:, i])
        )
    return filtered_motion(position, low_pass)
