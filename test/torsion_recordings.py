"""Read recordings of a real arm with link encoders, and simulate joints of known stiffness."""

import json
from pathlib import Path

import numpy as np
from real_recordings import DATA
from scipy.interpolate import CubicSpline

from dynid_ros.recording import Recording

KUKA = DATA / "kuka_kr300" / "develop" / "ff_A.npz"


def kuka_recording(path: Path) -> Recording:
    """Return a recording of a KUKA KR300, converted from degrees and motor torques to rad and joint torques.

    Only axes 1 to 3 have link encoders. Gear ratios are in published_para.json beside the file or above it.
    """
    parameters = next((f for p in path.resolve().parents if (f := p / "published_para.json").exists()), None)
    parameters = parameters or DATA / "kuka_kr300" / "published_para.json"
    ratios = np.array(json.loads(parameters.read_text())["u"])
    data = np.load(path)
    link = np.deg2rad(data["q_link_deg"])
    link[:, 3:] = np.nan
    return Recording(
        tuple(f"axis_{i}" for i in range(1, 7)),
        data["t"] - data["t"][0],
        np.deg2rad(data["q_motor_deg"]),
        np.deg2rad(data["dq_motor_deg_s"]),
        data["torque_abs_nm"] * ratios,
        link_position=link,
        source=path.name,
    )


def kuka_parts(run: Recording) -> list[tuple[str, slice, slice]]:
    """Return divisions of a recording: name, fitted slice and predicted slice."""
    third = run.n_samples // 3
    half = run.n_samples // 2
    n = run.n_samples
    return [
        ("first half", slice(0, half), slice(half, n)),
        ("second half", slice(half, n), slice(0, half)),
        ("first two thirds", slice(0, 2 * third), slice(2 * third, n)),
        ("last two thirds", slice(third, n), slice(0, third)),
    ]


def flexible_joint(
    stiffness: float,
    *,
    amplitude: float = 0.8,
    speed: float = 1.0,
    delay: float = 0.0,
    noise: float = 2e-6,
    misfit: float = 0.0,
    ripple: float = 0.0,
    seed: int = 0,
) -> Recording:
    """Simulate 20 s of a joint at 250 Hz: link of 40 kg m² with gravity, rotor of 15 kg m², friction on both.

    The link's motion is given; spring, motor and torque follow from it without integration.

    Args:
        stiffness: N m/rad.
        amplitude: amplitude of the motion in rad.
        speed: factor of the speed of motion.
        delay: delay of the link encoder in s.
        noise: noise of the link encoder in rad.
        misfit: fraction of the torque that varies with the angle and is not modeled.
        ripple: ripple of the link encoder in rad, 400 periods per turn.
        seed: seed of motion and noise.
    """
    rng = np.random.default_rng(seed)
    rate = 2 * np.pi * speed * np.array([0.15, 0.4, 0.65, 0.9])
    phase = rng.uniform(0, 2 * np.pi, 4)
    size = amplitude * np.array([1.0, 0.5, 0.25, 0.15])
    inertia = 40.0
    rotor = 15.0
    moment = 300.0
    coulomb = 20.0
    viscous = 30.0

    def link(t, order=0):
        return (size * rate**order * np.sin(np.multiply.outer(t, rate) + phase + order * np.pi / 2)).sum(axis=-1)

    fine = np.arange(-0.1, 20.1, 0.0005)
    friction = coulomb * np.tanh(link(fine, 1) / 0.05) + viscous * link(fine, 1)
    spring = CubicSpline(fine, inertia * link(fine, 2) + moment * np.sin(link(fine)) + friction)
    time = np.arange(0, 20, 0.004)
    q_m, qd_m, qdd_m = (link(time, order) + spring(time, order) / stiffness for order in range(3))
    torque = spring(time) + rotor * qdd_m + 0.5 * viscous * qd_m + 0.5 * coulomb * np.tanh(qd_m / 0.05)
    torque += misfit * np.std(torque) * np.sin(3.3 * q_m + rng.uniform(0, 6))
    torque += 0.005 * np.std(torque) * rng.normal(size=len(time))
    late = link(time - delay)
    shown = late + ripple * np.cos(400 * late) + noise * rng.normal(size=len(time)) + 1e-3
    columns = (x[:, np.newaxis] for x in (q_m, qd_m, torque))
    return Recording(("joint",), time, *columns, link_position=shown[:, np.newaxis])
