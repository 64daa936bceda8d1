"""Detection of a drifting sensitivity or offset: a generalised likelihood ratio in sliding windows of many lengths."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, fdtri

WINDOW_SAMPLES = (8, 16, 32, 64, 128, 256)
"""Lengths of the windows in samples: a sudden large drift shows in short ones, a small one in long ones."""
N_COLUMNS = 4
"""Number of fitted columns: sensitivity, offset, and Coulomb and viscous friction, whose change raises no alarm."""
SINGLE_CAUSE_CHI2 = float(chdtri(1, 0.01))
"""Smallest gain of the statistic by a second cause for which both causes are reported."""
MIN_EIGENVALUE = 1e-6
"""Prior information on each column, in units of the noise: an undetermined change is estimated as zero."""
REFRESH_SAMPLES = 4096
"""Number of samples after which the running sums are computed anew, so that rounding errors do not accumulate."""


@dataclass(frozen=True)
class Drift:
    """Change of one sensor against its reference, in units of the reading.

    Attributes:
        sensitivity, offset: changes; 0 where the data do not require a change.
        sensitivity_std, offset_std: standard errors of the changes.
        samples: number of samples since the change began, including samples without information.
        statistic: Δᵀ V⁻¹ Δ of these samples, see `DriftWindows`.
    """

    sensitivity: float
    sensitivity_std: float
    offset: float
    offset_std: float
    samples: int
    statistic: float


class DriftWindows:
    """Window sums for n joints; each sample adds a row A x = e + noise per joint, all divided by the noise.

    In each window the change Δ of (sensitivity, offset) is estimated together with friction. Without drift its mean is
    zero, and its covariance V is that of the noise, the reference and the known moments. Then Δᵀ V⁻¹ Δ exceeds the
    threshold with probability rate / (joints · windows). So one sample gives a false alarm with probability `rate` at
    most, for any dependence between windows (Bonferroni).

    Args:
        reference: (n, 2, 2) covariance of the reference sensitivity and offset.
        n_moments: number of columns for the errors of the known moments, see `add`.
        rate: largest probability of a false alarm of any joint at one sample.
        dof: degrees of freedom of the noise.

    Attributes:
        n_joints: number n of joints.
        threshold: threshold of the statistic.
        count: number of samples so far.
    """

    def __init__(self, reference: NDArray, n_moments: int, rate: float, dof: int) -> None:
        self._reference = reference
        self.n_joints = len(reference)
        chance = rate / (self.n_joints * len(WINDOW_SAMPLES))
        self.threshold = float(2 * fdtri(2, dof, 1 - chance))
        self._wide = N_COLUMNS + 1 + n_moments
        self._size = WINDOW_SAMPLES[-1]
        self._lengths = np.array(WINDOW_SAMPLES)
        self.clear()

    def clear(self) -> None:
        """Forget all samples."""
        self._products = np.zeros((self._size, self.n_joints, N_COLUMNS, self._wide))
        self._sums = np.zeros((len(WINDOW_SAMPLES), self.n_joints, N_COLUMNS, self._wide))
        self.count = 0

    def add(self, rows: NDArray, error: NDArray, moments: NDArray) -> NDArray:
        """Add a sample and return the largest statistic of each joint (n,).

        Args:
            rows: (n, N_COLUMNS) rows A, divided by the noise; zero for a joint without information.
            error: (n,) reading minus reference, divided by the noise.
            moments: (n, k) effect of one standard deviation of each independent error of the known moments, divided by
                the noise.
        """
        product = rows[:, :, None] * np.concatenate([rows, error[:, None], moments], axis=1)[:, None, :]
        position = self.count % self._size
        leaving = self._products[(position - self._lengths) % self._size]
        leaving[self.count < self._lengths] = 0.0
        self._products[position] = product
        self.count += 1
        self._sums += product - leaving
        if self.count % REFRESH_SAMPLES == 0:
            self._sums = np.stack([self._latest(length)[-1] for length in WINDOW_SAMPLES])
        full = self._lengths <= self.count
        statistic = np.zeros((len(WINDOW_SAMPLES), self.n_joints))
        if full.any():
            change, covariance = self._changes(self._sums[full], slice(None))
            statistic[full] = np.einsum("...i,...i", change, np.linalg.solve(covariance, change[..., None])[..., 0])
        return statistic.max(axis=0)

    def drift(self, joint: int) -> Drift:
        """Return the change of a joint's sensor against the reference, with the number of samples since it began."""
        sums = self._latest(min(self.count, self._size))[:, joint]
        length = self._change_length(sums)
        change, covariance = self._changes(sums[length - 1][None], slice(joint, joint + 1))
        value = change[0].copy()
        spread = covariance[0]
        information = np.linalg.inv(spread)
        score = information @ value
        std = np.sqrt(np.diagonal(spread))
        statistic = float(value @ score)
        alone = score**2 / np.diagonal(information)
        best = int(np.argmax(alone))
        if statistic - alone[best] < SINGLE_CAUSE_CHI2:
            value[best] = score[best] / information[best, best]
            std[best] = information[best, best] ** -0.5
            value[1 - best] = 0.0
        return Drift(float(value[0]), float(std[0]), float(value[1]), float(std[1]), length, statistic)

    def _change_length(self, sums: NDArray) -> int:
        """Return the number of samples since the change: the split at which two separate fits explain most.

        Both parts are fitted in full, so that constant errors of reference and moments do not move the split.
        """
        shortest = WINDOW_SAMPLES[0]
        explained = _explained(sums) + _explained(sums[-1] - sums)
        explained[: shortest - 1] = explained[max(len(sums) - shortest, shortest) : -1] = -np.inf
        return int(np.argmax(explained)) + 1

    def _latest(self, length: int) -> NDArray:
        """Return the sums (length, n, …) over the last 1, 2, … `length` samples."""
        order = (self.count - 1 - np.arange(length)) % self._size
        return np.cumsum(self._products[order], axis=0)

    def _changes(self, sums: NDArray, joints: slice) -> tuple[NDArray, NDArray]:
        """Return estimates (…, n, 2) of the changes and their covariances (…, n, 2, 2), from window sums."""
        inverse = np.linalg.inv(sums[..., :N_COLUMNS] + MIN_EIGENVALUE * np.eye(N_COLUMNS))
        solved = inverse[..., :2, :] @ sums[..., N_COLUMNS:]
        by_moments = solved[..., 1:]  # change of Δ by the errors of the known moments
        covariance = inverse[..., :2, :2] + by_moments @ np.swapaxes(by_moments, -1, -2) + self._reference[joints]
        return solved[..., 0], covariance


def _explained(sums: NDArray) -> NDArray:
    """Return the sum of squares (l,) that the columns explain, from window sums (l, N_COLUMNS, …)."""
    score = sums[..., N_COLUMNS]
    solved = np.linalg.solve(sums[..., :N_COLUMNS] + MIN_EIGENVALUE * np.eye(N_COLUMNS), score[..., None])[..., 0]
    return np.einsum("li,li->l", score, solved)


# Alarm about a torque sensor.


@dataclass(frozen=True)
class DriftAlarm:
    """Alarm about a torque sensor whose readings contradict its reference calibration.

    Attributes:
        joint: name of the sensor's joint.
        cause: "gain", "offset" or "gain and offset".
        gain: present gain, N m per unit of the reading.
        offset: present offset, in units of the reading.
        gain_change, offset_change: changes against the reference; 0 where the data do not require a change.
        gain_std, offset_std: standard errors of the changes.
        since: time of the first sample with the change, s.
        time: time of the alarm, s.
    """

    joint: str
    cause: str
    gain: float
    offset: float
    gain_change: float
    offset_change: float
    gain_std: float
    offset_std: float
    since: float
    time: float

    @classmethod
    def of(cls, joint: str, reference: tuple[float, float], drift: Drift, since: float, time: float) -> DriftAlarm:
        """Return the alarm for a drift of a sensor against its reference gain and offset."""
        gain = 1 / (1 / reference[0] + drift.sensitivity)
        causes = [name for name, change in (("gain", drift.sensitivity), ("offset", drift.offset)) if change]
        return cls(
            joint=joint,
            cause=" and ".join(causes),
            gain=gain,
            offset=reference[1] + drift.offset,
            gain_change=gain - reference[0],
            offset_change=drift.offset,
            gain_std=drift.sensitivity_std * gain**2,
            offset_std=drift.offset_std,
            since=since,
            time=time,
        )

    def __str__(self) -> str:
        changes = []
        if "gain" in self.cause:
            fraction = self.gain_change / (self.gain - self.gain_change)
            changes.append(f"gain by {fraction:+.1%} to {self.gain:.5g}")
        if "offset" in self.cause:
            changes.append(f"offset by {self.offset_change:+.3g} to {self.offset:.4g}")
        return f"torque sensor of '{self.joint}' drifted: {' and '.join(changes)}, since t = {self.since:.1f} s"

    def document(self) -> dict:
        """Return the attributes as plain data."""
        return asdict(self)
