"""Provide problems with known answers, none of which is computed by the package."""

import numpy as np

GRAVITY = 9.80665

# Ma & Hollerbach 1996, Table 1: first moments m_i s_i in frame i (kg m), and Table 2: results of their method.
# The link lengths are not printed; the products that Table 2 implies are split into lengths and masses.
SARCOS_TWISTS = np.deg2rad([-90, -90, 90, 90, -90, 90, 0])
SARCOS_OFFSETS = np.array([0, 0, -0.5, 0, -0.3, 0, -0.4])
SARCOS_MOMENTS = np.array(
    [
        [0.1116, 0.0485, -0.6305],
        [-0.1063, 0.3289, 0.5566],
        [0.1256, 0.2997, 0.8100],
        [0.0437, 0.2184, -0.0692],
        [0.0376, -0.0057, 0.1491],
        [-0.0217, -0.0620, 0.0149],
        [0.1132, -0.0594, 0.8770],
    ]
)
SARCOS_CARRIED = {2: -5.5440 / -0.5, 4: -1.4584 / -0.3, 6: -1.5605 / -0.4}  # mass from joint i on, kg
SARCOS_IDENTIFIED = np.array(
    [
        [0.1116, -0.9594],
        [-0.1063, -4.6877],
        [0.1256, -1.0284],
        [0.0437, 1.5219],
        [0.0376, 0.0871],
        [-0.0217, 0.6686],
        [0.1132, -0.0594],
    ]
)


def sarcos_masses() -> np.ndarray:
    """Return link masses (7,) that satisfy Table 2; the first two are irrelevant."""
    m7 = SARCOS_CARRIED[6]
    m6 = m5 = (SARCOS_CARRIED[4] - m7) / 2
    m4 = m3 = (SARCOS_CARRIED[2] - SARCOS_CARRIED[4]) / 2
    return np.array([2.0, 3.0, m3, m4, m5, m6, m7])


def sarcos_dh() -> list[dict]:
    """Return the standard DH rows of the Sarcos Dextrous Arm."""
    return [
        {"a": 0.0, "alpha": alpha, "d": d, "theta": 0.0, "type": "revolute"}
        for alpha, d in zip(SARCOS_TWISTS, SARCOS_OFFSETS, strict=True)
    ]


def dh_gravity_torque(rows: list[dict], mass, moment, q, gravity=(0, 0, -GRAVITY)) -> np.ndarray:
    """Return the holding torque (N, n) of a revolute DH arm: −z_i × (lever arm) · weight, summed over links."""
    torques = np.zeros_like(q, dtype=float)
    for sample, angles in enumerate(q):
        pose = np.eye(4)
        axes = []
        origins = []
        points = []
        for row, angle, m, mc in zip(rows, angles, mass, moment, strict=True):
            axes.append(pose[:3, 2])
            origins.append(pose[:3, 3])
            c = np.cos(angle + row["theta"])
            s = np.sin(angle + row["theta"])
            ca = np.cos(row["alpha"])
            sa = np.sin(row["alpha"])
            pose = pose @ np.array(
                [
                    [c, -s * ca, s * sa, row["a"] * c],
                    [s, c * ca, -c * sa, row["a"] * s],
                    [0, sa, ca, row["d"]],
                    [0, 0, 0, 1],
                ]
            )
            points.append((m, m * pose[:3, 3] + pose[:3, :3] @ mc))
        for i, (axis, origin) in enumerate(zip(axes, origins, strict=True)):
            for m, first_moment in points[i:]:
                torques[sample, i] -= axis @ np.cross(first_moment - m * origin, gravity)
    return torques


def single_rotations(holds: np.ndarray, span: float, steps: int, joints=None) -> np.ndarray:
    """Return poses (M, n): from each hold pose, each joint alone rotates over `span` in rad up and down."""
    poses = []
    for hold in np.atleast_2d(holds):
        for joint in range(hold.size) if joints is None else joints:
            angles = np.linspace(-span / 2, span / 2, steps)
            for angle in np.concatenate([angles, angles[::-1]]):
                pose = hold.copy()
                pose[joint] += angle
                poses.append(pose)
    return np.array(poses)


def approach_directions(steps: int, rotations: int, n_joints: int) -> np.ndarray:
    """Return directions (M, n) for `single_rotations`: all joints arrive upwards, then downwards."""
    signs = np.tile(np.repeat([1.0, -1.0], steps), rotations)
    return np.repeat(signs[:, None], n_joints, axis=1)
