"""Friction that is not a step at a reversal: what may be mistaken for a lag or a low-pass of the torques."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.motion_samples import MotionSamples
from dynid_ros.recording.torque_fit import Terms, TorqueFit

DISTANCES = (0.003, 0.02)
"""Distances over which friction may build up after a reversal, rad or m."""
WITHIN = 0.01
"""Friction is followed at steps of this time, s."""
SHOWN = 1.9
"""Gain that what is done to the torques must bring in two joints by rigid motion alone. In slow motion, friction that
no model has gets as far as 1.8; faults that matter bring 2 and more."""


def with_presliding(terms: Terms, samples: MotionSamples) -> Terms:
    """The terms, and friction of each joint that builds up slowly, comes at another time, or differs by direction."""
    built_up = np.stack([_dahl(samples, distance) for distance in DISTANCES], axis=2)
    later = _rates(samples)
    own = np.stack([later, np.abs(samples.velocity)], axis=2)
    rigid = np.concatenate([terms.rigid, own_columns(own)], axis=2)
    return Terms(rigid, np.concatenate([terms.drive, built_up], axis=2), terms.moving)


def shows_in_rigid_torques(changed: NDArray, rigid: NDArray, fit: TorqueFit, moving: NDArray) -> bool:
    """Whether what turns the rigid torques (M, n) into `changed` shows beside what the fit leaves.

    In two of the joints that are judged, or in the only one.
    """
    judged = np.isfinite(fit.rms)
    square = np.mean((changed - rigid)[:, judged] ** 2, axis=0, where=moving[:, judged])
    gains = np.zeros(len(judged))
    gains[judged] = 0.5 * np.log1p(square / np.maximum(fit.rms[judged] ** 2, np.finfo(float).tiny))
    return bool(np.sort(gains)[-2:][0] > SHOWN)


def own_columns(values: NDArray) -> NDArray:
    """(M, n, n k) from (M, n, k): coefficients that each joint has for itself."""
    m, n, k = values.shape
    columns = np.zeros((m, n, n, k))
    columns[:, range(n), range(n)] = values
    return columns.reshape(m, n, n * k)


def _rates(samples: MotionSamples) -> NDArray:
    """(M, n) derivative of the direction by time: how friction would change if it came later."""
    return np.concatenate([np.gradient(s.direction, s.time, axis=0)[s.kept] for s in samples.stretches])


def _dahl(samples: MotionSamples, distance: float) -> NDArray:
    """(M, n) Dahl's friction of unit size, low-passed as the torques are."""
    parts = []
    for stretch in samples.stretches:
        step = float(stretch.time[1] - stretch.time[0])
        every = max(1, round(WITHIN / step))
        moves = np.diff(stretch.position[::every], axis=0, prepend=stretch.position[:1])
        direction, forget = np.sign(moves), np.exp(-np.abs(moves) / distance)
        friction = np.zeros_like(moves)
        now = np.zeros(moves.shape[1])
        for k in range(len(moves)):
            now = direction[k] + (now - direction[k]) * forget[k]
            friction[k] = now
        even = np.column_stack([np.interp(stretch.time, stretch.time[::every], column) for column in friction.T])
        parts.append(samples.wide(1 / step).filter(even)[stretch.kept])
    return np.concatenate(parts)
