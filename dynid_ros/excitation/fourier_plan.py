"""A planned Fourier motion: the series, its repetitions and how well it is conditioned."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.trajectory import Trajectory

WEAK = 100.0
"""Condition number above which the parameters are hard to tell apart (Schröer, Uhl, Albright and Huttenhofer 1992)."""


@dataclass(frozen=True, eq=False)
class FourierPlan:
    """What `FourierExcitation.plan` returns.

    Attributes:
        series: one period.
        periods: how often it is repeated.
        units: "rad" or "m" for each joint.
        condition_number: of the regressor, its columns brought to unit norm (see `Condition`), with what was known.
        singular_values: of that regressor, largest first.
        n_parameters: parameters that it counts, with friction and drives.
        criterion: what the search made small.
        value: what it reached.
        starts: searches made.
        history: time (s) and value of each better motion that was found.
        seed: of the random motions.

    """

    series: FourierSeries
    periods: int
    units: tuple[str, ...]
    condition_number: float
    singular_values: tuple[float, ...]
    n_parameters: int
    criterion: str
    value: float
    starts: int
    history: tuple[tuple[float, float], ...]
    seed: int

    @cached_property
    def trajectory(self) -> Trajectory:
        """All periods, from rest to rest."""
        return self.series.trajectory(self.periods)

    @property
    def duration(self) -> float:
        """Duration of the motion, s."""
        return self.periods * self.series.period

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML; the coefficients are those of `FourierSeries`."""
        series = self.series
        return {
            "format": "dynid-fourier/1",
            "duration": round(self.duration, 4),
            "base_frequency": series.base_frequency,
            "harmonics": series.n_harmonics,
            "periods": self.periods,
            "seed": self.seed,
            "criterion": self.criterion,
            "starts": self.starts,
            "condition_number": round(self.condition_number, 3),
            "base_parameters": self.n_parameters,
            "joints": {
                name: {"offset": _plain(offset), "sine": _plain(sine), "cosine": _plain(cosine)}
                for name, offset, sine, cosine in zip(
                    series.joint_names, series.offset, series.sine, series.cosine, strict=True
                )
            },
        }

    def summary(self) -> str:
        """Lines of text: duration, spectrum, condition number, range and speed of each joint."""
        series = self.series
        counted = "1 period" if self.periods == 1 else f"{self.periods} periods"
        lines = [
            f"{self.duration:.1f} s, {counted} of frequencies from {series.base_frequency:g} to "
            f"{series.n_harmonics * series.base_frequency:g} Hz, condition number {self.condition_number:.3g} of "
            f"{self.n_parameters} base parameters"
        ]
        for name, unit, low, high, speed, most in zip(series.joint_names, self.units, *series.largest(), strict=True):
            ends = [f"{np.rad2deg(end):.0f}°" if unit == "rad" else f"{end:.3f} m" for end in (low, high)]
            lines.append(f"{name}: {' to '.join(ends)}, up to {speed:.2f} {unit}/s and {most:.2f} {unit}/s²")
        if not self.condition_number <= WEAK:
            lines.append(
                f"warning: condition number above {WEAK:g}; let joints move further (limits, base_frequency), or give "
                "more design_time"
            )
        return "\n".join(lines)


def _plain(values: NDArray) -> object:
    return np.round(values, 9).tolist()
