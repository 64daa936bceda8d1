"""Initial values of searches: least squares of the motors' equations, then of the links'.

u = spring(q_m - q) + J qdd_m + b qd_m does not contain the links' dynamics, so its few unknowns are well determined.
The rest, u - J qdd_m - b qd_m, passes through the springs to the links (Lightcap and Banks 2007, eqs 1 and 7). All
columns and the torque pass the same low-pass. Equation errors suffer from a clock that is off by milliseconds, and
alignment by links that lag their motors leaves such an error. Several clocks are tried, and the motion of the links is
predicted from each.
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
from dynid_ros.identification.flexible.output_error import OutputError, Solution
from dynid_ros.identification.flexible.run_residuals import RunTerms
from dynid_ros.identification.flexible.runs import Run
from dynid_ros.model.friction_terms import FrictionDirection
from dynid_ros.signals import LowPass, Motion, filtered_motion

MIN_START_FRACTION = 1e-3
"""Smallest initial value of motor inertia, friction and similar terms, in parts of its scale."""
MAX_STIFFNESS_RATIO = 3.0
"""Ratio of the stiffnesses by regressing torque on deflection and the reverse, above which deflection is noise."""
MAX_START_RATIO = 100.0
"""Largest initial stiffness, in parts of the smaller of these; the steps must resolve its resonance as well."""
PRIOR_WEIGHTS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 1e3)
"""Weights of nominal links in parts of the runs' information; the smallest with positive inertia is used."""
MIN_INERTIA_FRACTION = 0.2
"""Smallest inertia about a joint, in parts of the nominal one."""
MIN_SCALED_EIGENVALUE = 0.02
"""Smallest eigenvalue of the inertia matrix with ones on its diagonal."""
N_POSES = 40
CLOCK_SHIFTS_S = (0.0, 0.007, 0.015)
"""Trial shifts of the clocks of links' sensors, s: links lag their motors, which looks like a clock that is early."""


class Start(NamedTuple):
    """Initial point of a search.

    Attributes:
        shift: Shift of the links' clocks, s.
        values: Parameters (p,) in the order of the layout.
        cost: Prediction error, see `OutputError.left`.
    """

    shift: float
    values: NDArray
    cost: float


def starts(layout: Layout, runs: Sequence[Run], terms: Sequence[RunTerms]) -> list[Start]:
    """Return starts with several clocks where these are unknown, the best first.

    Raises:
        IdentificationError: No motion was found for any of them.
    """
    found = []
    wrong = None
    for shift in CLOCK_SHIFTS_S if any(own.clock for own in terms) else CLOCK_SHIFTS_S[:1]:
        moved = shifted(runs, terms, shift)
        try:
            values = LinearSteps(layout, moved).solve()
            found.append(Start(shift, values, OutputError(layout, moved, terms).left(values)))
        except IdentificationError as error:
            wrong = error
    if not found:
        raise wrong or IdentificationError("no start")
    return sorted(found, key=lambda start: start.cost)


def shifted(runs: Sequence[Run], terms: Sequence[RunTerms], shift: float) -> list[Run]:
    """Return the runs with unknown clocks of the links moved by a shift, s."""
    return [replace(run, offset=run.offset + shift * own.clock) for run, own in zip(runs, terms, strict=True)]


class LinearSteps:
    """Least squares of the columns and torques of runs, filtered alike.

    Args:
        runs: Runs with the clocks of `Run.offset`.
    """

    def __init__(self, layout: Layout, runs: Sequence[Run]) -> None:
        self._layout = layout
        self._parts = [_Part(layout, run) for run in runs]
        self._longest_step = max(run.step / run.parts for run in runs)

    def solve(self) -> NDArray:
        """Return plausible parameters (p,) in the order of the layout."""
        layout = self._layout
        n = self._layout.robot.n_joints
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
        """Return the terms (t,) of a motor, and the stiffness."""
        rows = [
            np.column_stack([part.deflection[:, joint], part.motor_terms[:, :, joint].T, np.ones(len(part.torque))])
            for part in self._parts
        ]
        torque = np.concatenate([part.torque[:, joint] for part in self._parts])
        matrix = np.concatenate(rows)
        scale = np.linalg.norm(matrix, axis=0) + 1e-300
        # The unknown zero of the link's angle adds a constant torque, the same column as an offset.
        found = lstsq(matrix / scale, torque, cond=1e-8)[0] / scale
        least = np.sqrt(np.mean(torque**2)) / (np.sqrt(np.mean(matrix[:, 0] ** 2)) + 1e-300)
        stiffness = found[0] if found[0] > MIN_START_FRACTION * least else least
        own = found[1:-1]
        # Noise of the deflection biases the stiffness low; the smaller noise of the torque biases the compliance.
        turned = np.column_stack([torque, matrix[:, 1:]])
        size = np.linalg.norm(turned, axis=0) + 1e-300
        compliance = (lstsq(turned / size, matrix[:, 0], cond=1e-8)[0] / size)[0]
        stiffer = 1 / compliance if compliance > 0 else np.inf
        if stiffer > MAX_STIFFNESS_RATIO * stiffness:
            # The joint looks rigid: start with half of the inertia and friction at the motor.
            own = lstsq(matrix[:, 1:] / scale[1:], torque, cond=1e-8)[0][:-1] / scale[1:-1] / 2
            most = MAX_START_RATIO * stiffness
            if self._layout.motor_terms[:1] == MOTOR_TERMS[:1] and own[0] > 0:
                most = max(stiffness, min(most, own[0] / self._longest_step**2))
            stiffness = min(stiffer, most)
        for k, term in enumerate(self._layout.motor_terms):
            if term != MOTOR_TERMS[-1]:
                size = np.sqrt(np.mean(matrix[:, 1 + k] ** 2))
                own[k] = max(own[k], MIN_START_FRACTION * np.sqrt(np.mean(torque**2)) / size) if size else 0.0
        return own, stiffness

    def _links(self, passed: Sequence[NDArray]) -> NDArray:
        """Return links and their friction (r + 2 n,) from the torques that pass through the springs."""
        layout = self._layout
        matrix = np.concatenate([part.links.reshape(-1, part.links.shape[2]) for part in self._parts])
        torque = np.concatenate([values.reshape(-1) for values in passed])
        nominal = np.zeros(matrix.shape[1])
        nominal[: layout.n_links] = layout.base.project(layout.robot.parameters)
        scale = np.linalg.norm(matrix, axis=0)
        scale[scale < 1e-9 * scale.max()] = np.inf
        own = np.arange(matrix.shape[1]) < layout.n_links
        rest = np.concatenate([torque - matrix @ nominal, np.zeros(matrix.shape[1])])
        for weight in PRIOR_WEIGHTS:
            rows = np.vstack([matrix / scale, np.diag(np.where(own, weight, PRIOR_WEIGHTS[0]))])
            found = nominal + lstsq(rows, rest)[0] / scale
            if self._moves(found[own]):
                break
        friction = slice(layout.n_links, None)
        speed = np.abs(matrix[:, friction]).sum(axis=0)
        least = MIN_START_FRACTION * np.abs(torque).sum() / np.maximum(speed, 1e-300) / len(nominal)
        found[friction] = np.where(speed > 0, np.maximum(found[friction], least), 0.0)
        return found

    def _moves(self, links: NDArray) -> bool:
        """Return whether links have positive inertia in the poses of the runs, and enough of the nominal one."""
        layout = self._layout
        poses = np.concatenate([part.poses for part in self._parts])
        regressor = layout.inertia_regressor(poses[np.linspace(0, len(poses) - 1, N_POSES).astype(int)])
        matrices = layout.base.reduce(regressor) @ links
        nominal = regressor @ layout.robot.parameters
        own = np.arange(layout.robot.n_joints)
        least = MIN_INERTIA_FRACTION * np.maximum(nominal[:, own, own].min(axis=0), 0.0)
        # The scaling lets light joints count as much as heavy ones.
        size = np.sqrt(np.maximum(matrices[:, own, own].min(axis=0), 1e-12))
        positive = np.linalg.eigvalsh(matrices / np.outer(size, size)).min() > MIN_SCALED_EIGENVALUE
        return bool(positive and (matrices[:, own, own].min(axis=0) > least).all())


class _Part:
    """Filtered columns of one run."""

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
        friction[0][:, own, own] = direction(link.velocity)
        friction[1][:, own, own] = link.velocity
        self.links = low_pass.filter(np.concatenate([regressor, *friction], axis=2))[kept]
        self.motor_terms = low_pass.filter(motors, axis=1)[:, kept]
        self.deflection = low_pass.filter(run.motor.position - link.position)[kept]
        self.poses = run.motor.position
        self.torque = low_pass.filter(run.torque)[kept]


def link_motion(run: Run, low_pass: LowPass) -> Motion:
    """Return the filtered motion of the links at the times of the motors, (N, n) each.

    Raises:
        IdentificationError: No position of a link is known.
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


class SearchOutcome(NamedTuple):
    """End of a search, with its start and runs."""

    start: Start
    search: OutputError
    runs: list[Run]
    solution: Solution


# Dry friction.


USUAL_TERMS = MOTOR_TERMS[:2]
"""Terms of a motor's torque that are always estimated where terms are chosen."""
MIN_SCORE = 9.0
"""Gain of twice the log-likelihood by dry friction of a motor, in parts of the misfit, from which it is fitted."""
MIN_ERRORS_ABOVE_ZERO = 3.0
"""Distance from zero in standard errors, widened by errors of the model, from which dry friction is significant."""


def with_motor_friction(end: SearchOutcome, terms: Sequence[RunTerms]) -> SearchOutcome:
    """Return the fit with dry friction of the motors where it is significant, else the given fit.

    The score test (Rao 1948) needs no search: a step from the fit without the term predicts the gain of likelihood.
    Where the gain suffices, a search starts from this step.
    """
    layout = replace(end.search.layout, motor_terms=(*end.search.layout.motor_terms, "motor_coulomb"))
    search = OutputError(layout, end.runs, terms)
    values = extended(end.solution.values, layout)
    own = end.solution.runs
    places = layout.index("motor_coulomb")
    try:
        steps, gains = search.score(values, own, places)
        shown = (steps > 0) & (gains > MIN_SCORE * end.solution.misfit)
        if not shown.any():
            return end
        values[places] = np.maximum(steps, 0.0)
        solution = search.solve(values, (values, search.named(own)))
    except IdentificationError:
        return end
    friction = solution.values[places]
    errors = np.sqrt(np.diagonal(solution.covariance)[places])
    if not (friction > MIN_ERRORS_ABOVE_ZERO * errors).any():
        return end
    return SearchOutcome(end.start._replace(values=extended(end.start.values, layout)), search, end.runs, solution)


def extended(values: NDArray, layout: Layout) -> NDArray:
    """Return parameters (p,) of a layout whose first parameters are given; the others are zero."""
    return np.concatenate([values, np.zeros(len(layout.names) - len(values))])


# Torques that are periodic in the motor's position: cogging, ripple of the current sensor or of the gear.


MIN_RIPPLE_PERIODS = 3.0
"""Periods of a ripple within the motor's range: slower ones look like gravity or friction."""
MAX_RIPPLE_PHASE_RAD = 1.0
"""Largest phase of a ripple between two samples."""
MIN_RIPPLE_GAIN = 30.0
"""Gain of twice the log-likelihood by a ripple, in parts of the misfit. Noise gains 14 at the best of 1000 periods."""


class Ripple(NamedTuple):
    """Torque ripple of a motor that the model lacks.

    Attributes:
        remark: Sentence on the ripple.
        shift: Change (p,) of the parameters if the ripple were in the model.
    """

    remark: str
    shift: NDArray


def torque_ripples(end: SearchOutcome, joint_names: Sequence[str]) -> list[Ripple]:
    """Return the largest significant torque ripple of each motor in each run."""
    found = []
    for k, (run, channels) in enumerate(zip(end.runs, end.solution.channels, strict=True)):
        for channel in channels:
            if channel.kind != "motor":
                continue
            position = run.motor.position[:, channel.joint]
            wavenumber = _ripple_wavenumber(channel.samples, position, run)
            if not wavenumber:
                continue
            waves = np.stack([np.cos(wavenumber * position), np.sin(wavenumber * position)], axis=1)
            amplitudes, shift, gain = end.search.omitted_torque(end.solution, k, channel.joint, waves)
            if gain > MIN_RIPPLE_GAIN * end.solution.misfit:
                joint = joint_names[channel.joint]
                size = float(np.hypot(*amplitudes))
                remark = (
                    f"{run.source}: the torque of {joint} has a ripple of {size:.2g} that repeats every "
                    f"{2 * np.pi / wavenumber:.3g} of its motor's position, which the model lacks; intervals are wider "
                    "by what it does to the values"
                )
                found.append(Ripple(remark, shift))
    return found


def _ripple_wavenumber(residual: NDArray, position: NDArray, run: Run) -> float:
    """Return the wavenumber, 1/rad or 1/m, of the largest ripple in a residual (W,) over positions (N,); 0: none."""
    inside = position[run.compared.window]
    span = float(np.ptp(inside))
    fastest = float(np.abs(np.diff(inside)).max())
    if not fastest > 0:
        return 0.0
    candidates = np.arange(2 * np.pi * MIN_RIPPLE_PERIODS / span, MAX_RIPPLE_PHASE_RAD / fastest, np.pi / span / 2)
    if not len(candidates):
        return 0.0
    return float(max(candidates, key=lambda number: abs(np.exp(1j * number * inside) @ residual)))
