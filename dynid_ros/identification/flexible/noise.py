"""How noisy measured links and motors are at every frequency, and what makes their residuals white."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.flexible.run import Run
from dynid_ros.identification.flexible.run_residuals import Channel

SMOOTHING = (6, 0.1)
"""Frequencies to either side over which a density is averaged, and at least this share of their number."""
LEAST_DENSITY = 1e-6
"""Of noise, in parts of its mean."""


def whiteners(run: Run, channels: Sequence[Channel], *, start: bool = False) -> dict[int, NDArray]:
    """For each joint (F, c, c) matrices that make the noise of its c channels white and of variance one.

    The density of noise is the residuals' own, averaged over neighbouring frequencies. It is one matrix for link and
    motor together: the noise of a motor's encoder, which the prediction starts from, is in the residuals of both. At
    the lines of a periodic motion errors of the model gather, which are no noise; at the `start` of a search, when
    errors of the parameters are all over, they count.
    """
    lines = run.compared.lines[:0] if start else run.compared.lines
    found = {}
    for joint in sorted({channel.joint for channel in channels}):
        own = [channel for channel in channels if channel.joint == joint]
        spectra = np.stack([channel.residual for channel in own], axis=1)
        counted = np.ones(len(spectra))
        if len(lines):
            every = np.arange(len(spectra))[:, None]
            counted[(np.abs(every - lines) <= 1).any(axis=1)] = 0.0
        density = _averaged(spectra, counted)
        density += np.diag(LEAST_DENSITY * np.einsum("fcc->c", density).real / len(density) + 1e-300)
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
