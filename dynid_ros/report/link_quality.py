"""Measured torque compared with that of the identified links and of the URDF's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from dynid_ros.identification.equations import compare
from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.identified.validation import Validation, validate_torque
from dynid_ros.recording import Recording
from dynid_ros.report.drawing import LIGHT, plot_area, svg
from dynid_ros.report.formats import counted
from dynid_ros.report.plots import stretches
from dynid_ros.signals import LowPass, Motion


@dataclass(frozen=True, eq=False)
class TorqueComparison:
    """All torques of one recording through the same low-pass, decimated.

    Attributes:
        recording: its name.
        time: (M,) s.
        motion: position, velocity, acceleration at these times, (M, n) each.
        measured, identified, urdf: (M, n) torque.
        rate: of the samples before decimation, Hz.
    """

    recording: str
    time: NDArray
    motion: Motion
    measured: NDArray
    identified: NDArray
    urdf: NDArray
    rate: float

    @classmethod
    def of(cls, result: LinkResult, recording: Recording) -> TorqueComparison:
        """Of one recording.

        Raises:
            RecordingError: a joint of the robot is not in it.
            IdentificationError: no torque, or too short.
        """
        own = recording.select(result.robot.joint_names)
        time, measured, identified = compare(result.model, own)
        urdf = compare(result.urdf_model, own)[2]
        segments = result.model.signals.segments(own)
        rows = np.searchsorted(np.concatenate([part.time for part in segments]), time)
        motion = Motion(
            *(np.concatenate(parts)[rows] for parts in zip(*(part.motion for part in segments), strict=True))
        )
        return cls(recording.source, time, motion, measured, identified, urdf, segments[0].rate)

    @property
    def error(self) -> NDArray:
        """(M, n) measured less identified torque."""
        return self.measured - self.identified

    @property
    def step(self) -> float:
        """Time between samples, s."""
        return float(np.median(np.diff(self.time))) if len(self.time) > 1 else 1 / self.rate


def agreement(
    joints: Sequence[str],
    comparisons: Sequence[TorqueComparison],
    predicted: Callable[[TorqueComparison], NDArray],
) -> Validation:
    """Agreement per joint over several recordings together."""
    names = ", ".join(one.recording for one in comparisons)
    measured = np.concatenate([one.measured for one in comparisons])
    return validate_torque(names, joints, measured, np.concatenate([predicted(one) for one in comparisons]))


# How well the identified links predict torque, on the strictest data at hand.


REPEATED = 0.1
"""Distance between motions, in parts of their spread, below which one repeats the other. A trajectory run again lies
some 0.003 from the first, another one of the same style 0.5."""
MOTION_SAMPLES = 3000


@dataclass(frozen=True, eq=False)
class LinkQuality:
    """Agreement of the identified model and of the URDF, whose friction was fitted to the same data.

    Attributes:
        shown: the recordings that it is judged on: those not used to fit if there are any.
        unseen: whether these were not used to fit.
        repeated: whether they only repeat the motion that was fitted.
        model, urdf: on `shown`.
        fit: of the identified model on the data that it was fitted to.
        torque_rms: (n,) on `shown`.
    """

    shown: tuple[TorqueComparison, ...]
    unseen: bool
    repeated: bool
    model: Validation
    urdf: Validation
    fit: Validation
    torque_rms: NDArray

    @classmethod
    def of(
        cls, joints: Sequence[str], fitted: Sequence[TorqueComparison], unseen: Sequence[TorqueComparison]
    ) -> LinkQuality:
        """From the fitted recordings and those that were not fitted."""
        shown = tuple(unseen or fitted)
        measured = np.concatenate([one.measured for one in shown])
        return cls(
            shown=shown,
            unseen=bool(unseen),
            repeated=bool(unseen) and _distance(fitted, unseen) < REPEATED,
            model=agreement(joints, shown, lambda one: one.identified),
            urdf=agreement(joints, shown, lambda one: one.urdf),
            fit=agreement(joints, fitted, lambda one: one.identified),
            torque_rms=np.sqrt(np.mean(measured**2, axis=0)),
        )

    @property
    def evidence(self) -> str:
        """On what data."""
        count = counted(len(self.shown), "recording")
        return f"{count} not used to fit" if self.unseen else "the data that it was fitted to"

    @property
    def worst(self) -> int | None:
        """Joint with the lowest R²; None if none has torque."""
        return int(np.nanargmin(self.model.r2)) if np.isfinite(self.model.r2).any() else None


def explained(validation: Validation) -> float:
    """R² of the torque, mean of the joints; a joint counts as 0 at least."""
    known = validation.r2[~np.isnan(validation.r2)]
    return float(np.maximum(known, 0.0).mean()) if known.size else float("nan")


def _distance(fitted: Sequence[TorqueComparison], unseen: Sequence[TorqueComparison]) -> float:
    """Median distance of an unseen position and velocity from the nearest fitted one, in parts of their spread."""
    known, new = (
        np.vstack([np.hstack([one.motion.position, one.motion.velocity]) for one in comparisons])
        for comparisons in (fitted, unseen)
    )
    spread = known.std(axis=0)
    moving = spread > 0
    some = new[np.unique(np.linspace(0, len(new) - 1, min(len(new), MOTION_SAMPLES)).astype(int))]
    distance, _ = cKDTree(known[:, moving] / spread[moving]).query(some[:, moving] / spread[moving])
    return float(np.median(distance) / np.sqrt(max(int(moving.sum()), 1)))


# Autocorrelation of prediction errors: whether they are noise, or something that the model lacks.


LONGEST_LAG = 2.0
"""Seconds."""
FILTER_SAMPLES = 1 << 14
WIDTH, HEIGHT = 210, 130


@dataclass(frozen=True, eq=False)
class ResidualCorrelation:
    """Of the longest recording.

    Attributes:
        lag: (L,) s.
        values: (L, n) autocorrelation of the error of each joint.
        noise: (L,) autocorrelation that the low-pass gives to white noise.
        band: half width of the 95 % band about `noise` in which estimates from white noise lie (Bartlett 1946).
    """

    lag: NDArray
    values: NDArray
    noise: NDArray
    band: float

    @classmethod
    def of(cls, cutoff: float, comparisons: Sequence[TorqueComparison]) -> ResidualCorrelation:
        """Errors after a low-pass at `cutoff` Hz."""
        chosen = max(comparisons, key=lambda one: len(one.time))
        step, parts = chosen.step, stretches(chosen.time)
        length = max(own.stop - own.start for own in parts)
        count = int(max(1, min(LONGEST_LAG / step, length // 2)))
        error = chosen.error - chosen.error.mean(axis=0)
        values = np.array([_products([error[own] for own in parts], lag) for lag in range(count + 1)])
        power = np.where(values[0] > 0, values[0], np.nan)
        every = max(1, round(step * chosen.rate))
        noise = _noise(LowPass(cutoff, chosen.rate), every * count + 1)[::every]
        band = 1.96 * np.sqrt((1 + 2 * np.sum(noise[1:] ** 2)) / len(error))
        return cls(step * np.arange(count + 1), values / power, noise, float(band))

    @property
    def memory(self) -> NDArray:
        """(n,) s until the autocorrelation first is no larger than that of noise may be; infinite if it never is."""
        above = self.values > self.noise[:, None] + self.band
        above[0] = True
        within = ~above & np.isfinite(self.values)
        return np.where(within.any(axis=0), self.lag[within.argmax(axis=0)], np.inf)

    @property
    def like_noise(self) -> NDArray:
        """(n,) whether errors look like noise of the sensors: at most a tenth of the lags lie outside of the band."""
        with np.errstate(invalid="ignore"):
            outside = np.abs(self.values - self.noise[:, None]) > self.band
        return np.mean(outside[1:], axis=0) <= 0.1

    def picture(self, joint: int, name: str) -> str:
        """SVG of one joint."""

        def draw(figure: Figure) -> None:
            axes = plot_area(figure, left=36, bottom=38, top=6)
            axes.fill_between(
                self.lag, self.noise - self.band, self.noise + self.band, color=LIGHT["band"], linewidth=0
            )
            axes.axhline(0, color=LIGHT["line"], linewidth=1)
            axes.plot(self.lag, self.values[:, joint], color=LIGHT["identified"], linewidth=1.6)
            axes.set_ylim(-1.05, 1.05)
            axes.margins(x=0)
            axes.set_yticks([-1, 0, 1])
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.set_xlabel("lag (s)")

        return svg(f"Autocorrelation of the error of {name}", WIDTH, HEIGHT, draw)


def _products(parts: Sequence[NDArray], lag: int) -> NDArray:
    """(n,) mean product of errors that far apart, in stretches (M_i, n)."""
    pairs = [(part[: len(part) - lag], part[lag:]) for part in parts if len(part) > lag]
    return sum(np.sum(a * b, axis=0) for a, b in pairs) / sum(len(a) for a, _ in pairs)


def _noise(low_pass: LowPass, count: int) -> NDArray:
    """Return the autocorrelation (count,) of filtered white noise, by samples of lag."""
    frequency = np.fft.rfftfreq(max(FILTER_SAMPLES, 2 * count), 1 / low_pass.rate)
    values = np.fft.irfft(low_pass.gain(frequency) ** 2)[:count]
    return values / values[0]
