"""The ten inertial parameters of a rigid body, `[m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]`.

The inertia is about the origin of the frame, with tensor elements for `Ixy`, `Ixz`, `Iyz` (Atkeson, An and Hollerbach
1986, eq. 8). SI units.
"""

import numpy as np

PARAMETERS_PER_LINK = 10
STATIC = 4
"""Mass and mass moments, the first parameters, act at rest and take force; inertia takes moment alone."""


def skew(vector: np.ndarray) -> np.ndarray:
    """Matrix (3, 3) of the cross product with `vector` (3,)."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def inertia_matrix(parameters: np.ndarray) -> np.ndarray:
    """Inertia tensors (..., 3, 3) about the frame's origin of parameters (..., 10)."""
    return parameters[..., [4, 5, 6, 5, 7, 8, 6, 8, 9]].reshape(*parameters.shape[:-1], 3, 3)


def from_center_of_mass(mass: float, center: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Parameters (10,) of a body of `inertia` (3, 3) about its centre of mass, which is at `center` (3,)."""
    arm = skew(center)
    about_origin = inertia - mass * arm @ arm
    return np.concatenate([[mass], mass * center, about_origin[np.triu_indices(3)]])


def transformed(parameters: np.ndarray, transform: np.ndarray) -> np.ndarray:
    """Parameters (..., 10) of the same bodies in frames in which their own have poses `transform` (..., 4, 4)."""
    inertia = inertia_matrix(parameters)
    # The second moments of mass, unlike the inertia, transform as a 4x4 matrix on homogeneous points.
    moments = np.empty((*inertia.shape[:-2], 4, 4))
    moments[..., :3, :3] = _complement(inertia, 0.5)
    moments[..., :3, 3] = moments[..., 3, :3] = parameters[..., 1:4]
    moments[..., 3, 3] = parameters[..., 0]
    moments = transform @ moments @ np.swapaxes(transform, -1, -2)
    inertia = _complement(moments[..., :3, :3], 1.0)
    rows, columns = np.triu_indices(3)
    return np.concatenate([moments[..., 3:, 3], moments[..., :3, 3], inertia[..., rows, columns]], axis=-1)


def _complement(matrix: np.ndarray, share: float) -> np.ndarray:
    """Share of the trace on the diagonal, less the matrix (..., 3, 3): inertia to second moments, and back."""
    return share * np.trace(matrix, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - matrix
