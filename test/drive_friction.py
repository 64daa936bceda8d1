"""Compute friction torques of given motions by models of drives from the literature, and of held joints."""

import numpy as np

LAWS = ("coulomb", "stribeck", "dahl", "lugre", "load", "direction")


def friction_torque(
    law: str, time: np.ndarray, q: np.ndarray, qd: np.ndarray, rigid: np.ndarray, level: np.ndarray, rng
) -> np.ndarray:
    """Return friction torques (N, n) in N m of joints with positions q (N, n).

    A held joint keeps the friction of its last motion (initially random), which takes a part of the changes of its load
    up to Coulomb friction.

    Args:
        law: one of LAWS. coulomb: with viscous friction; stribeck: higher near rest; dahl, lugre: builds up over a
            presliding distance of 0.2 to 10 mrad, lugre with Stribeck's curve and a bristle's damping; load: Coulomb
            friction that grows with the torque; direction: Coulomb and viscous friction that differ by direction.
        time: (N,) in s.
        q, qd: (N, n) in rad or m, and per s.
        rigid: (N, n) torque without friction in N m.
        level: (n,) Coulomb friction in N m.
        rng: random generator.
    """
    n = len(level)
    viscous = level * rng.uniform(0.2, 1.0, n) / np.maximum(qd.std(axis=0), 0.02)
    stribeck = rng.uniform(0.1, 0.5, n) if law in ("stribeck", "lugre") else np.zeros(n)
    width = rng.uniform(0.01, 0.1)
    coulomb = level * (1 + stribeck * np.exp(-((qd / width) ** 2)))
    if law == "load":
        size = np.maximum(np.abs(rigid).max(axis=0), 1e-9)
        coulomb = coulomb * (1 + rng.uniform(0.1, 0.6, n) * np.abs(rigid) / size)
    forward = np.ones(n), np.ones(n)
    if law == "direction":
        forward = rng.uniform(0.7, 1.3, n), rng.uniform(0.6, 1.4, n)
    distance = {"dahl": (3e-4, 1e-2), "lugre": (2e-4, 5e-3)}.get(law, (1e-5, 1e-4))
    distance = np.exp(rng.uniform(*np.log(distance), n))
    torque = _presliding(q, rigid, coulomb, distance, rng.uniform(0.0, 1.0, n), rng)
    up = qd > 0
    torque = torque * np.where(up, forward[0], 1.0)
    sliding = viscous * np.where(up, forward[1], 1.0) * qd
    if law == "lugre":
        rate = np.gradient(torque, time, axis=0)
        most = 0.2 * level
        torque = torque + np.clip(rng.uniform(0.0, 0.01) * rate, -most, most)
    return torque + sliding


def _presliding(q, rigid, coulomb, distance, taken, rng) -> np.ndarray:
    """Return Dahl's friction (N, n) with bound `coulomb` (N, n); it takes `taken` (n,) of load changes at rest."""
    friction = np.empty_like(q)
    now = coulomb[0] * rng.uniform(-1, 1, q.shape[1])
    steps = np.diff(q, axis=0, prepend=q[:1])
    forget = np.exp(-np.abs(steps) / distance)
    changes = taken * np.diff(rigid, axis=0, prepend=rigid[:1]) * (np.abs(steps) < 1e-7)
    limit = np.sign(steps) * coulomb
    for k in range(len(q)):
        now = limit[k] + (now - limit[k]) * forget[k] - changes[k]
        now = np.minimum(np.maximum(now, -coulomb[k]), coulomb[k])
        friction[k] = now
    return friction
