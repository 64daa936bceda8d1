"""Residuals of the measured links and motors of one run, and their derivatives by the parameters.

Residuals are compared in the frequency domain. There the noise of each channel has a density of any colour, and
frequencies above the compared band are left out.
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
from dynid_ros.identification.flexible.link_response import LinkMotion, LinkResponse
from dynid_ros.identification.flexible.runs import FEW_JOINTS, Run
from dynid_ros.signals import LowPass, Motion
from dynid_ros.signals.spectra import COUNT_TOLERANCE, FourierSums

INTERPOLATION_NODES = 6
"""Samples of the links' motion that an interpolation at the times of their sensor takes."""
MIN_VARIANCE = 1e-24
"""Smallest variance of a motor's harmonic, rad² or m²."""
CLOCK_TERMS = ("clock_offset", "clock_drift")
N_RUN_VALUES = 2 + len(STICTION)
"""Values per joint that the links' motion depends on in a run: initial position and velocity, and stiction."""
SEARCH_STICTION_WEIGHT = 1e12
"""Factor on the prior of stiction until `RunResiduals.refine`: joints then stick as Coulomb has it. Stiction that is
estimated with long steps leads the search into ruts, and its end then depends on its start."""
STICTION_SIZES = ((0.02, 1), (2e-3, 1), (0.01, 0))
"""Expected size of creep, bend and lead, as a factor of a power of the motors' RMS velocity."""
MIN_RMS_VELOCITY = 1e-6
"""rad/s or m/s."""


@dataclass(frozen=True)
class RunTerms:
    """Terms that are estimated for every run in addition to the parameters of the arm.

    Attributes:
        zero: Whether an offset of each link's angle from its motor is estimated.
        clock: Whether an offset of the links' clock from the robot's is estimated.
        drift: Whether a drift of that clock is estimated.
    """

    zero: bool = True
    clock: bool = False
    drift: bool = False

    def names(self, n_joints: int) -> tuple[str, ...]:
        """Return the names of the run's parameters after the 5 n of the links' start and stiction."""
        clocks = [term for term, wanted in zip(CLOCK_TERMS, (self.clock, self.drift), strict=True) if wanted]
        return (*(f"zero {i}" for i in range(n_joints) if self.zero), *clocks)


@dataclass(frozen=True, eq=False)
class Channel:
    """Spectrum of one residual and its derivatives.

    Attributes:
        kind: "link" or "motor".
        joint: Number of the joint.
        residual: Measured minus predicted at all frequencies, (F,) complex; its mean square is the density of noise.
        samples: Residual in time.
        derive: Function that computes `columns`.
    """

    kind: str
    joint: int
    residual: NDArray
    samples: NDArray
    derive: Callable[[], NDArray]

    @cached_property
    def columns(self) -> NDArray:
        """Derivatives (B, p) at the compared frequencies by the parameters of the arm, then of the run."""
        return self.derive()

    def rms_at(self, bins: NDArray) -> float:
        """Return the RMS of the residual at some frequencies, given by their numbers."""
        # A spectrum holds each frequency twice, except for the mean.
        power = np.abs(self.residual[bins]) ** 2 * np.where(bins > 0, 2.0, 1.0)
        return float(np.sqrt(power.sum() / len(self.samples)))


class RunResiduals:
    """Residuals of a run.

    Args:
        layout: Order of the arm's parameters.
        run: Stretch of motion.
        terms: Terms that are estimated for this run alone.
    """

    def __init__(self, layout: Layout, run: Run, terms: RunTerms) -> None:
        self.layout = layout
        self.run = run
        self.terms = terms
        self._response = LinkResponse(
            layout.robot, layout.base, run.fine, run.step / run.parts, tones(run, len(run.fine), run.parts, 0)
        )
        self._tones = np.stack([tones(run, len(run.time), 1, order) for order in range(3)])
        robot_time = run.link_time + run.offset
        start = run.time[run.compared.window.start]
        elapsed = robot_time - start + COUNT_TOLERANCE * run.step
        is_inside = (elapsed >= 0) & (elapsed < self._duration)
        self._rows = np.flatnonzero(is_inside & np.isfinite(run.link).any(axis=1))
        if len(self._rows) < INTERPOLATION_NODES:
            raise IdentificationError(
                f"{run.source}: no positions of links while the motors move; look at the clocks of both"
            )
        # Fourier sums at the frequencies of the motors' spectra, for any times of the links' sensor.
        phases = 2 * np.pi * (robot_time[self._rows] - start) / self._duration
        self._n_frequencies = int(run.band * self._duration + COUNT_TOLERANCE) + 1
        self._link_sums = FourierSums(phases, self._n_frequencies).sums
        self._direction = motor_direction(run)
        self._guess = self._measured()
        self._firm = SEARCH_STICTION_WEIGHT
        self._kept: tuple[NDArray, NDArray, LinkMotion] | None = None
        self._last: tuple[NDArray, NDArray, LinkMotion] | None = None

    @property
    def _duration(self) -> float:
        return self.run.step * (self.run.compared.window.stop - self.run.compared.window.start)

    def _corrections(self, own: NDArray) -> NDArray:
        """Return the corrections (t, n) of the motors' motion."""
        return own[self._named :].reshape(self.run.n_joints, -1).T

    def keep(self) -> None:
        """Take the motion of the last evaluation as the start of the next: its parameters were accepted."""
        self._kept = self._last

    def renew(self) -> None:
        """Differentiate anew by the corrections of the motors' motion."""
        self._response.by_corrections = None

    def refine(self) -> None:
        """Estimate stiction from now on, and for few joints the directions of friction with the exact step."""
        self._firm = 1.0
        self._response.exact = self.run.n_joints <= FEW_JOINTS

    @property
    def size(self) -> int:
        """Number of parameters of the run."""
        return self._named + self._tones.shape[2] * self.run.n_joints

    @property
    def _named(self) -> int:
        """Number of parameters before the corrections of the motors' motion."""
        return N_RUN_VALUES * self.run.n_joints + len(self.terms.names(self.run.n_joints))

    @property
    def least(self) -> NDArray:
        """Lower bounds (size,): creep, bend and lead of sticking joints are not negative."""
        bounds = np.full(self.size, -np.inf)
        bounds[2 * self.run.n_joints : N_RUN_VALUES * self.run.n_joints] = 0.0
        return bounds

    @property
    def prior(self) -> NDArray:
        """Inverse variances (size,) known in advance: joints nearly stick, and encoders determine harmonics."""
        n = self.run.n_joints
        inverse_variances = np.zeros(self.size)
        speed = np.sqrt(np.mean(self.run.motor.velocity**2, axis=0)) + MIN_RMS_VELOCITY
        stiction = np.concatenate([size * speed**power for size, power in STICTION_SIZES])
        inverse_variances[2 * n : N_RUN_VALUES * n] = self._firm * stiction**-2.0
        variance = 2.0 * self.run.motor_noise**2 / len(self.run.time)
        inverse_variances[self._named :] = np.repeat(1.0 / np.maximum(variance, MIN_VARIANCE), self._tones.shape[2])
        return inverse_variances

    def named(self, own: NDArray) -> NDArray:
        """Return the parameters that a part of the run has too: all except the corrections of the motors' motion."""
        return own[: self._named]

    def start(self, named: NDArray | None = None) -> NDArray:
        """Return initial values (size,).

        Args:
            named: Values of the named parameters; None: the measured start of the links, zero offsets and clock.
        """
        if named is not None:
            return np.concatenate([named, np.zeros(self.size - self._named)])
        velocity = (self._guess[1] - self._guess[0]) * self.run.parts / self.run.step
        return np.concatenate([self._guess[0], velocity, np.zeros(self.size - 2 * self.run.n_joints)])

    def motion(self, values: NDArray, own: NDArray) -> LinkMotion:
        """Return the motion of the links for parameters (p,) of the arm and (size,) of the run."""
        n = self.run.n_joints
        near = self._near(values, own)
        moving = own[: N_RUN_VALUES * n].reshape(N_RUN_VALUES, n)
        corrections = self._corrections(own)
        motion = self._response.solve(self.layout.unpack(values), moving[:2], near, corrections, moving[2:])
        self._last = values, own, motion
        return motion

    def _near(self, values: NDArray, own: NDArray) -> NDArray:
        """Return expected positions (N, n) of the links by the kept motion and its derivatives."""
        if self._kept is None:
            return self._guess
        kept, kept_own, motion = self._kept
        if "by_parameters" not in motion.__dict__:
            return motion.position
        moved = values - kept
        moved_own = own - kept_own
        n = N_RUN_VALUES * self.run.n_joints
        change = np.concatenate([moved[: self.layout.n_response], moved_own[:n], moved_own[self._named :]])
        return motion.position + motion.by_parameters @ change

    def channels(self, values: NDArray, own: NDArray) -> list[Channel]:
        """Return the residuals at these parameters."""
        motion = self.motion(values, own)
        return [*self._link_channels(motion, own), *self._motor_channels(motion, self.layout.unpack(values), own)]

    def spectrum(self, torques: NDArray) -> NDArray:
        """Return the spectra (B, e) at the compared frequencies, scaled as residuals are, of torques (N, e)."""
        inside = torques[self.run.compared.window]
        return np.fft.rfft(inside, axis=0)[self.run.compared.bins] / np.sqrt(len(inside))

    def _link_channels(self, motion: LinkMotion, own: NDArray) -> list[Channel]:
        run = self.run
        layout = self.layout
        n = self.run.n_joints
        names = self.terms.names(n)
        before = N_RUN_VALUES * n
        extra = dict(zip(names, own[before : self._named], strict=True))
        camera = run.link_time[self._rows]
        since = camera - (run.link_time[0] + run.link_time[-1]) / 2
        drift = extra.get(CLOCK_TERMS[1], 0.0)
        at = camera + run.offset + extra.get(CLOCK_TERMS[0], 0.0) + drift * since
        first, weights = interpolation(run.time[0], run.step / run.parts, len(motion.position), at)
        nodes = first[:, None] + np.arange(INTERPOLATION_NODES)
        position, velocity = (np.einsum("ms,msi->mi", weights, x[nodes]) for x in (motion.position, motion.velocity))
        found = []
        p = len(layout.names)
        for i in range(n):
            known = np.isfinite(run.link[self._rows, i])
            if known.sum() < INTERPOLATION_NODES:
                continue
            residual = run.link[self._rows, i] - position[:, i] - extra.get(f"zero {i}", 0.0)
            # Unseen samples have no weight.
            residual[~known] = 0.0
            scale = known / np.sqrt(known.sum())

            def derive(i: int = i, scale: NDArray = scale) -> NDArray:
                by = motion.by_parameters[:, i]
                columns = self._columns(sum(weights[:, s, None] * by[nodes[:, s]] for s in range(INTERPOLATION_NODES)))
                for k, name in enumerate(names):
                    if name == f"zero {i}":
                        columns[:, p + before + k] = 1.0
                    elif name == CLOCK_TERMS[0]:
                        columns[:, p + before + k] = velocity[:, i]
                    elif name == CLOCK_TERMS[1]:
                        columns[:, p + before + k] = velocity[:, i] * since
                return self._link_sums(scale[:, None] * columns)[run.compared.bins]

            found.append(Channel("link", i, self._link_sums(scale * residual), residual, derive))
        return found

    def _motor_channels(self, motion: LinkMotion, parameters: JointParameters, own: NDArray) -> list[Channel]:
        run = self.run
        layout = self.layout
        n = self.run.n_joints
        position = motion.position[:: run.parts]
        motor = Motion(*(x + t @ self._corrections(own) for x, t in zip(run.motor, self._tones, strict=True)))
        terms = motor_columns(motor.velocity, motor.acceleration, self._direction, layout.motor_terms)
        deflection = motor.position - position
        tangent = parameters.spring_tangent(deflection)
        springs = parameters.spring_columns(deflection)
        torque = parameters.motor_torque(deflection, terms)
        found = []
        p = len(layout.names)
        r = layout.n_response
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

            spectrum = scale * np.fft.rfft(residual)[: self._n_frequencies]
            found.append(Channel("motor", i, spectrum, residual, derive))
        return found

    def _columns(self, by: NDArray) -> NDArray:
        """Return derivatives (N, p + size) by all parameters from those by the parameters of the links' motion."""
        p = len(self.layout.names)
        r = self.layout.n_response
        own = N_RUN_VALUES * self.run.n_joints
        columns = np.zeros((len(by), p + self.size))
        columns[:, :r], columns[:, p : p + own], columns[:, p + self._named :] = np.split(by, [r, r + own], axis=1)
        return columns

    def _measured(self) -> NDArray:
        """Return the initial guess (N, n) of the links' positions: the measured ones, or those of the motors."""
        run = self.run
        found = run.fine.copy()
        time = run.time[0] + run.step / run.parts * np.arange(len(found))
        low_pass = LowPass(run.band, run.parts / run.step)
        for i in range(run.n_joints):
            known = np.isfinite(run.link[:, i])
            if known.sum() >= INTERPOLATION_NODES:
                deflection = np.interp(time, run.link_time[known] + run.offset, run.link[known, i]) - found[:, i]
                found[:, i] += low_pass.filter(deflection - deflection.mean())
        return found


def tones(run: Run, n_samples: int, parts: int, order: int) -> NDArray:
    """Return derivatives (N, 2 h) of cosines and sines at the lines of periodic motors; empty for other motions."""
    angles = np.outer(run.step / parts * np.arange(n_samples), run.compared.tones)
    turned = angles + order * np.pi / 2
    return np.hstack([np.cos(turned), np.sin(turned)]) * np.tile(run.compared.tones**order, 2)


def motor_direction(run: Run) -> NDArray:
    """Return the directions (N, n) of the motors' motion, averaged over the samples in which they reverse."""
    width = np.abs(run.motor.acceleration) * run.step / 2 + 1e-9
    return np.clip(run.motor.velocity / width, -1.0, 1.0)


def interpolation(start: float, step: float, n_samples: int, at: NDArray) -> tuple[NDArray, NDArray]:
    """Return first nodes (M,) and Lagrange's weights (M, 6) that interpolate N uniform samples at times (M,)."""
    place = (at - start) / step
    first = np.clip(np.floor(place).astype(int) - INTERPOLATION_NODES // 2 + 1, 0, n_samples - INTERPOLATION_NODES)
    x = (place - first)[:, None]
    nodes = np.arange(INTERPOLATION_NODES)
    weights = np.ones((len(at), INTERPOLATION_NODES))
    for j in nodes:
        others = nodes[nodes != j]
        weights[:, j] = np.prod((x - others) / (j - others), axis=1)
    return first, weights
