"""Where the frames of a chain are."""

import numpy as np

from dynid_ros.model.chain import Chain
from dynid_ros.model.samples import blocks


def joint_frames(chain: Chain, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Joint frames in the base frame: rotations (n, 3, 3, N) and origins (n, 3, N), at positions q (N, n).

    The samples come last, so that numpy's inner loops run over them. The columns of a rotation are the axes of the
    frame; its z is the axis of the joint.
    """
    n_samples, n = q.shape
    rotations = np.empty((n, 3, 3, n_samples))
    origins = np.empty((n, 3, n_samples))
    rotation = np.repeat(np.eye(3)[:, :, None], n_samples, axis=2)
    origin = np.zeros((3, n_samples))
    for i, transform in enumerate(chain.transforms):
        origin = origin + transform[:3, 3] @ rotation
        rotation = transform[:3, :3].T @ rotation
        if chain.prismatic[i]:
            origin += rotation[:, 2] * q[:, i]
        else:
            cos, sin = np.cos(q[:, i]), np.sin(q[:, i])
            x, y = rotation[:, 0], rotation[:, 1]
            rotation[:, 0], rotation[:, 1] = x * cos + y * sin, y * cos - x * sin
        rotations[i], origins[i] = rotation, origin
    return rotations, origins


def joint_axes(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Unit axes (N, n, 3) of the joints in the base frame, at positions q (N, n)."""
    axes = np.empty((*q.shape, 3))
    for block in blocks(len(q)):
        rotations, _ = joint_frames(chain, q[block])
        axes[block] = rotations[:, :, 2].transpose(2, 0, 1)
    return axes


def link_poses(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Poses (N, n, 4, 4) of the link frames in the base frame, at positions q (N, n)."""
    poses = np.zeros((*q.shape, 4, 4))
    poses[..., 3, 3] = 1.0
    for block in blocks(len(q)):
        for i, (rotation, origin) in enumerate(zip(*joint_frames(chain, q[block]), strict=True)):
            offset = chain.link_offsets[i]
            poses[block, i, :3, :3] = (offset[:3, :3].T @ rotation).transpose(2, 0, 1)
            poses[block, i, :3, 3] = (origin + offset[:3, 3] @ rotation).T
    return poses
