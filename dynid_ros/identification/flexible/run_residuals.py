"""What the measured links and motors of one run leave unexplained, and how that depends on the parameters.

Residuals are taken to the frequency domain: there the noise of each channel has a density of its own, whatever colour
it has, and what lies above the band that is compared is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.flexible_parameters import JointParameters, Layout, motor_columns
from dynid_ros.identification.flexible.friction_directions import STICTION
from dynid_ros.identification.flexible.link_response import EXACT_MARCH_STEP_S, LinkMotion, LinkResponse
from dynid_ros.identification.flexible.runs import FEW_JOINTS, Run
from dynid_ros.signals import LowPass, Motion

NODES = 6
"""Samples of the links' motion that an interpolation at the times of their sensor takes."""
LEAST_VARIANCE = 1e-24
"""Smallest variance of a motor's harmonic, rad² or m²."""
CLOCK_TERMS = ("clock_offset", "clock_drift")
MOVING = 2 + len(STICTION)
"""Values of each joint that the links' motion depends on, for a run: position and velocity at first, and stiction."""
FIRM = 1e12
"""Until the last search joints of many stick as Coulomb has it, for the sake of time: by so much less do they else."""
LIKELY, SLOWEST = ((0.02, 1), (2e-3, 1), (0.01, 0)), 1e-6
"""Likely size of each term of stiction, times a power of the motors' RMS velocity, which is no less than the other."""


@dataclass(frozen=True)
class RunTerms:
    """What is estimated besides the parameters of the arm, for every run anew.

    Attributes:
        zero: an offset of each joint's link angle from that of its motor.
        clock: offset of the links' clock from the robot's.
        drift: and its drift.
    """

    zero: bool = True
    clock: bool = False
    drift: bool = False

    def names(self, n_joints: int) -> tuple[str, ...]:
        """Names, after the 5 n of the links' start and of how joints stick."""
        clocks = [term for term, wanted in zip(CLOCK_TERMS, (self.clock, self.drift), strict=True) if wanted]
        return (*(f"zero {i}" for i in range(n_joints) if self.zero), *clocks)


@dataclass(frozen=True, eq=False)
class Channel:
    """Spectrum of one residual and of its derivatives.

    Attributes:
        kind: "link" or "motor".
        joint: number.
        residual: (F,) measured less predicted at all frequencies, complex; its mean square is the density of noise.
        samples: residual in time.
        derive: computes `columns`.
    """

    kind: str
    joint: int
    residual: NDArray
    samples: NDArray
    derive: Callable[[], NDArray]

    @cached_property
    def columns(self) -> NDArray:
        """(B, p) derivatives of the prediction at the frequencies that hold the motion.

        By the parameters of the arm, then by those of the run.
        """
        return self.derive()


class RunResiduals:
    """Residuals of a run.

    Args:
        layout: of the arm's parameters.
        run: the stretch.
        terms: what is estimated for this run alone.
    """

    def __init__(self, layout: Layout, run: Run, terms: RunTerms) -> None:
        self.layout, self.run, self.terms = layout, run, terms
        self._response = LinkResponse(
            layout.robot, layout.base, run.fine, run.step / run.parts, tones(run, len(run.fine), run.parts, 0)
        )
        self._tones = np.stack([tones(run, len(run.time), 1, order) for order in range(3)])
        robot_time = run.link_time + run.offset
        start, end = run.time[run.compared.window.start], run.time[run.compared.window.start] + self._duration
        self._rows = np.flatnonzero((robot_time >= start) & (robot_time < end) & np.isfinite(run.link).any(axis=1))
        if len(self._rows) < NODES:
            raise IdentificationError(
                f"{run.source}: no positions of links while the motors move; look at the clocks of both"
            )
        # At the frequencies of the motors' spectra, whenever the links were seen.
        rates = np.arange(int(run.band * self._duration) + 1) / self._duration
        self._transform = np.exp(-2j * np.pi * np.outer(rates, robot_time[self._rows] - start))
        self._direction = motor_direction(run)
        self._guess = self._measured()
        self._firm = 1.0 if run.n_joints <= FEW_JOINTS else FIRM
        self._kept: tuple[NDArray, NDArray, LinkMotion] | None = None
        self._last: tuple[NDArray, NDArray, LinkMotion] | None = None

    @property
    def _duration(self) -> float:
        return self.run.step * (self.run.compared.window.stop - self.run.compared.window.start)

    def _corrections(self, own: NDArray) -> NDArray:
        """(t, n) of the motors' motion."""
        return own[self._named :].reshape(self.run.n_joints, -1).T

    def keep(self) -> None:
        """Start from the last motion henceforth: its parameters were found good."""
        self._kept = self._last

    def refine(self) -> None:
        """From now on find out how links stick, of few joints also more exactly when."""
        self._firm = 1.0
        if self.run.n_joints <= FEW_JOINTS:
            self._response.march_step = EXACT_MARCH_STEP_S

    @property
    def size(self) -> int:
        """Number of parameters of the run."""
        return self._named + self._tones.shape[2] * self.run.n_joints

    @property
    def _named(self) -> int:
        """So many come before the corrections of the motors' motion."""
        return MOVING * self.run.n_joints + len(self.terms.names(self.run.n_joints))

    @property
    def least(self) -> NDArray:
        """(size,) below which no value is tried: joints creep and bend along their friction."""
        found = np.full(self.size, -np.inf)
        found[2 * self.run.n_joints : MOVING * self.run.n_joints] = 0.0
        return found

    @property
    def prior(self) -> NDArray:
        """(size,) inverse variances of what is known without the fit: joints nearly stick, encoders have harmonics."""
        found, n = np.zeros(self.size), self.run.n_joints
        speed = np.sqrt(np.mean(self.run.motor.velocity**2, axis=0)) + SLOWEST
        found[2 * n : MOVING * n] = self._firm * np.concatenate([size * speed**power for size, power in LIKELY]) ** -2.0
        variance = 2.0 * self.run.motor_noise**2 / len(self.run.time)
        found[self._named :] = np.repeat(1.0 / np.maximum(variance, LEAST_VARIANCE), self._tones.shape[2])
        return found

    def named(self, own: NDArray) -> NDArray:
        """Parameters of the run that a part of it has too: all but the corrections of the motors' motion."""
        return own[: self._named]

    def start(self, named: NDArray | None = None) -> NDArray:
        """Initial values (size,), of those that have names: the links' measured start, zero offsets and clock."""
        if named is not None:
            return np.concatenate([named, np.zeros(self.size - self._named)])
        first, second = self._guess[0], (self._guess[1] - self._guess[0]) * self.run.parts / self.run.step
        return np.concatenate([first, second, np.zeros(self.size - 2 * self.run.n_joints)])

    def motion(self, values: NDArray, own: NDArray) -> LinkMotion:
        """Motion of the links for parameters (p,) of the arm and (size,) of the run."""
        n, near = self.run.n_joints, self._near(values, own)
        moving, corrections = own[: MOVING * n].reshape(MOVING, n), self._corrections(own)
        motion = self._response.solve(self.layout.unpack(values), moving[:2], near, corrections, moving[2:])
        self._last = values, own, motion
        return motion

    def _near(self, values: NDArray, own: NDArray) -> NDArray:
        """Positions of the links (N, n) that are expected for these parameters, by those kept and their derivatives."""
        if self._kept is None:
            return self._guess
        kept, kept_own, motion = self._kept
        if "by_parameters" not in motion.__dict__:
            return motion.position
        moved, moved_own = values - kept, own - kept_own
        n = MOVING * self.run.n_joints
        change = np.concatenate([moved[: self.layout.n_response], moved_own[:n], moved_own[self._named :]])
        return motion.position + motion.by_parameters @ change

    def channels(self, values: NDArray, own: NDArray) -> list[Channel]:
        """Residuals at these parameters."""
        motion = self.motion(values, own)
        return [*self._link_channels(motion, own), *self._motor_channels(motion, self.layout.unpack(values), own)]

    def spectrum(self, torques: NDArray) -> NDArray:
        """Return the spectra (B, e) at the compared frequencies, scaled as residuals are, of torques (N, e)."""
        inside = torques[self.run.compared.window]
        return np.fft.rfft(inside, axis=0)[self.run.compared.bins] / np.sqrt(len(inside))

    def _link_channels(self, motion: LinkMotion, own: NDArray) -> list[Channel]:
        run, layout, n = self.run, self.layout, self.run.n_joints
        names = self.terms.names(n)
        before = MOVING * n
        extra = dict(zip(names, own[before : self._named], strict=True))
        camera = run.link_time[self._rows]
        since = camera - (run.link_time[0] + run.link_time[-1]) / 2
        drift = extra.get(CLOCK_TERMS[1], 0.0)
        at = camera + run.offset + extra.get(CLOCK_TERMS[0], 0.0) + drift * since
        first, weights = interpolation(run.time[0], run.step / run.parts, len(motion.position), at)
        nodes = first[:, None] + np.arange(NODES)
        position, velocity = (np.einsum("ms,msi->mi", weights, x[nodes]) for x in (motion.position, motion.velocity))
        found = []
        p = len(layout.names)
        for i in range(n):
            known = np.isfinite(run.link[self._rows, i])
            if known.sum() < NODES:
                continue
            residual = run.link[self._rows, i] - position[:, i] - extra.get(f"zero {i}", 0.0)
            # What was not seen adds nothing.
            residual[~known] = 0.0
            scale = known / np.sqrt(known.sum())

            def derive(i: int = i, scale: NDArray = scale) -> NDArray:
                by = motion.by_parameters[:, i]
                columns = self._columns(sum(weights[:, s, None] * by[nodes[:, s]] for s in range(NODES)))
                for k, name in enumerate(names):
                    if name == f"zero {i}":
                        columns[:, p + before + k] = 1.0
                    elif name == CLOCK_TERMS[0]:
                        columns[:, p + before + k] = velocity[:, i]
                    elif name == CLOCK_TERMS[1]:
                        columns[:, p + before + k] = velocity[:, i] * since
                return (self._transform[run.compared.bins] * scale) @ columns

            found.append(Channel("link", i, self._transform @ (scale * residual), residual, derive))
        return found

    def _motor_channels(self, motion: LinkMotion, parameters: JointParameters, own: NDArray) -> list[Channel]:
        run, layout, n = self.run, self.layout, self.run.n_joints
        position = motion.position[:: run.parts]
        motor = Motion(*(x + t @ self._corrections(own) for x, t in zip(run.motor, self._tones, strict=True)))
        terms = motor_columns(motor.velocity, motor.acceleration, self._direction, layout.motor_terms)
        deflection = motor.position - position
        tangent, springs = parameters.spring_tangent(deflection), parameters.spring_columns(deflection)
        torque = parameters.motor_torque(deflection, terms)
        found = []
        p, r = len(layout.names), layout.n_response
        for i in range(n):
            known = np.isfinite(run.torque[:, i])
            if not known.all():
                continue
            residual = (run.torque[:, i] - torque[:, i])[run.compared.window]
            scale = 1 / np.sqrt(len(residual))

            def derive(i: int = i) -> NDArray:
                by = -tangent[:, i, None] * motion.by_parameters[:: run.parts, i]
                by[:, r - springs.shape[2] : r] += springs[:, i]
                columns = self._columns(by)
                moved = tangent[:, i, None] * self._tones[0]
                for term, order in (("motor_viscous", 1), ("motor_inertia", 2)):
                    if term in parameters.motors:
                        moved = moved + parameters.motors[term][i] * self._tones[order]
                count = self._tones.shape[2]
                columns[:, p + self._named + i * count : p + self._named + (i + 1) * count] += moved
                columns[:, r + i : p : n] = terms[:, :, i].T
                return self.spectrum(columns)

            spectrum = scale * np.fft.rfft(residual)[: len(self._transform)]
            found.append(Channel("motor", i, spectrum, residual, derive))
        return found

    def _columns(self, by: NDArray) -> NDArray:
        """(N, p + size) derivatives by all parameters, of those by what the links' motion depends on."""
        p, r, own = len(self.layout.names), self.layout.n_response, MOVING * self.run.n_joints
        columns = np.zeros((len(by), p + self.size))
        columns[:, :r], columns[:, p : p + own], columns[:, p + self._named :] = np.split(by, [r, r + own], axis=1)
        return columns

    def _measured(self) -> NDArray:
        """Positions of the links (N, n) to start from: measured, else those of the motors."""
        run = self.run
        found = run.fine.copy()
        time = run.time[0] + run.step / run.parts * np.arange(len(found))
        low_pass = LowPass(run.band, run.parts / run.step)
        for i in range(run.n_joints):
            known = np.isfinite(run.link[:, i])
            if known.sum() >= NODES:
                deflection = np.interp(time, run.link_time[known] + run.offset, run.link[known, i]) - found[:, i]
                found[:, i] += low_pass.filter(deflection - deflection.mean())
        return found


def tones(run: Run, n_samples: int, parts: int, order: int) -> NDArray:
    """(N, 2 h) derivative of cosines and sines at the lines of periodic motors; none for others."""
    angles = np.outer(run.step / parts * np.arange(n_samples), run.compared.tones)
    turned = angles + order * np.pi / 2
    return np.hstack([np.cos(turned), np.sin(turned)]) * np.tile(run.compared.tones**order, 2)


def motor_direction(run: Run) -> NDArray:
    """Directions (N, n) of the motors' motion, averaged over the samples in which they reverse."""
    width = np.abs(run.motor.acceleration) * run.step / 2 + 1e-9
    return np.clip(run.motor.velocity / width, -1.0, 1.0)


def interpolation(start: float, step: float, n_samples: int, at: NDArray) -> tuple[NDArray, NDArray]:
    """First node (M,) and Lagrange's weights (M, 6) that interpolate N uniform samples at times (M,)."""
    place = (at - start) / step
    first = np.clip(np.floor(place).astype(int) - NODES // 2 + 1, 0, n_samples - NODES)
    x = (place - first)[:, None]
    nodes = np.arange(NODES)
    weights = np.ones((len(at), NODES))
    for j in nodes:
        others = nodes[nodes != j]
        weights[:, j] = np.prod((x - others) / (j - others), axis=1)
    return first, weights
