"""The ten inertial parameters of a rigid body, `[m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]`.

The inertia is about the origin of the frame, with tensor elements for `Ixy`, `Ixz`, `Iyz` (Atkeson, An and Hollerbach
1986, eq. 8). SI units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LOAD_NAMES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


@dataclass(frozen=True)
class Body:
    """A rigid body.

    Attributes:
        mass: kg.
        centre: (3,) m, of mass, in the link's frame; NaN without mass.
        inertia: (3,) kg m², principal, about the centre of mass, ascending; NaN without mass.
        possible: whether such a body can exist.
    """

    mass: float
    centre: NDArray
    inertia: NDArray
    possible: bool

    @classmethod
    def of(cls, parameters: NDArray) -> Body:
        """Make the body of parameters (10,)."""
        mass = float(parameters[0])
        possible = bool(is_possible(parameters))
        central = central_moments(parameters) if mass > 0 else np.full((3, 3), np.nan)
        if not np.isfinite(central).all():  # no mass, or hardly any, has no centre
            return cls(mass, np.full(3, np.nan), np.full(3, np.nan), possible)
        second = np.linalg.eigvalsh(central)
        return cls(mass, parameters[1:4] / mass, np.sort(second.sum() - second), possible)


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


# The 4x4 pseudo-inertia of a rigid body: the matrix whose positive definiteness is physical possibility.
# P = ∫ [r; 1] [r; 1]ᵀ dm = [[Σ, m c], [m cᵀ, m]] with Σ = ½ tr(I) 1 − I, about the link frame. A body of positive
# density that fills space has P ≻ 0, and each P ≻ 0 belongs to such a body; this includes the positive mass and the
# triangle inequality of the principal moments (Wensing, Kim and Slotine 2018, "Linear matrix inequalities for
# physically consistent inertial parameter identification"). SI units. Leading dimensions of arrays are bodies.


_ROUNDING = 1e-13
"""Central second moments below this fraction of the sum of those about the frame can be rounding of the parameters."""

_DENSEST = 8000.0
"""Density of steel, kg/m^3."""


def pseudo_inertia(parameters: NDArray) -> NDArray:
    """Pseudo-inertias (..., 4, 4) of parameters (..., 10)."""
    xx, xy, xz, yy, yz, zz = np.moveaxis(parameters[..., 4:], -1, 0)
    matrix = np.empty((*parameters.shape[:-1], 4, 4))
    matrix[..., 0, 0] = 0.5 * (yy + zz - xx)
    matrix[..., 1, 1] = 0.5 * (xx + zz - yy)
    matrix[..., 2, 2] = 0.5 * (xx + yy - zz)
    matrix[..., 0, 1] = matrix[..., 1, 0] = -xy
    matrix[..., 0, 2] = matrix[..., 2, 0] = -xz
    matrix[..., 1, 2] = matrix[..., 2, 1] = -yz
    matrix[..., :3, 3] = matrix[..., 3, :3] = parameters[..., 1:4]
    matrix[..., 3, 3] = parameters[..., 0]
    return matrix


def inertial_parameters(matrix: NDArray) -> NDArray:
    """Parameters (..., 10) of symmetric pseudo-inertias (..., 4, 4)."""
    xx, yy, zz = (matrix[..., i, i] for i in range(3))
    return np.stack(
        [
            matrix[..., 3, 3],
            *(matrix[..., i, 3] for i in range(3)),
            yy + zz,
            -matrix[..., 0, 1],
            -matrix[..., 0, 2],
            xx + zz,
            -matrix[..., 1, 2],
            xx + yy,
        ],
        axis=-1,
    )


def central_moments(parameters: NDArray) -> NDArray:
    """Second moments of mass (..., 3, 3) about the centre of mass, Σ − m c cᵀ, of bodies with mass."""
    matrix = pseudo_inertia(parameters)
    moment = matrix[..., :3, 3]
    return matrix[..., :3, :3] - moment[..., :, None] * moment[..., None, :] / matrix[..., 3:, 3:]


def is_possible(parameters: NDArray) -> NDArray:
    """Whether bodies of parameters (..., 10) can exist: (...) bool.

    Mass is positive, and so are the second moments about the centre of mass, beyond what rounding of the parameters
    could make of zero. Numbers that are not finite are not possible.
    """
    parameters = np.asarray(parameters, float)
    usable = np.isfinite(parameters).all(axis=-1) & (parameters[..., 0] > 0)
    body = np.where(usable[..., None], parameters, np.eye(PARAMETERS_PER_LINK)[0])
    about_frame = 0.5 * (body[..., 4] + body[..., 7] + body[..., 9])
    return usable & (np.linalg.eigvalsh(central_moments(body))[..., 0] > _ROUNDING * about_frame)


def log_cholesky(parameters: NDArray) -> NDArray:
    """Coordinates (..., 10) [α, d1, d2, d3, s12, s23, s13, t1, t2, t3] of possible bodies; each point of R¹⁰ is one.

    P = U Uᵀ with U = e^α [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]] (Rucker and Wensing
    2022, "Smooth parameterization of rigid-body inertia"); t is the centre of mass.

    Raises:
        numpy.linalg.LinAlgError: a body is not possible.
    """
    # The upper factor is the lower one of the matrix with its rows and columns in reverse.
    upper = np.linalg.cholesky(pseudo_inertia(parameters)[..., ::-1, ::-1])[..., ::-1, ::-1]
    scale = upper[..., 3, 3]
    unit = upper / scale[..., None, None]
    logarithms = np.log(unit[..., range(3), range(3)])
    shears = unit[..., [0, 1, 0], [1, 2, 2]]
    return np.concatenate([np.log(scale)[..., None], logarithms, shears, unit[..., :3, 3]], axis=-1)


def from_log_cholesky(coordinates: NDArray) -> NDArray:
    """Parameters (..., 10) of log-Cholesky coordinates (..., 10)."""
    upper = np.zeros((*coordinates.shape[:-1], 4, 4))
    upper[..., range(3), range(3)] = np.exp(coordinates[..., 1:4])
    upper[..., [0, 1, 0], [1, 2, 2]] = coordinates[..., 4:7]
    upper[..., :3, 3] = coordinates[..., 7:]
    upper[..., 3, 3] = 1.0
    matrix = upper @ np.swapaxes(upper, -1, -2) * np.exp(2 * coordinates[..., 0])[..., None, None]
    return inertial_parameters(matrix)


def divergence(parameters: NDArray, prior: NDArray) -> NDArray:
    """Entropic divergence (...) of possible bodies from possible priors: −log det(P P⁰⁻¹) + tr(P⁰⁻¹ P) − 4.

    Zero where they are equal, positive elsewhere, the same in every frame and in every unit (Lee, Wensing and Park
    2019, "Geometric robot dynamic identification: a convex programming approach").
    """
    factor = np.linalg.cholesky(pseudo_inertia(prior))
    half = np.linalg.solve(factor, np.linalg.cholesky(pseudo_inertia(parameters)))
    stretch = np.linalg.svd(half, compute_uv=False) ** 2
    return np.sum(stretch - 1 - np.log(stretch), axis=-1)


def parameter_spread(prior: NDArray) -> NDArray:
    """Inverse of the Hessian (10 n, 10 n) of Σ `divergence` at possible bodies (10 n,): block by link.

    To second order the divergence of P is ½ ‖L⁻¹ (P − P⁰) L⁻ᵀ‖² with P⁰ = L Lᵀ, so this is the covariance of a prior
    by which each principal second moment and the mass are known to about their own size.
    """
    links = np.asarray(prior, float).reshape(-1, PARAMETERS_PER_LINK)
    inverse = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(links)))[:, None]
    images = inverse @ pseudo_inertia(np.eye(PARAMETERS_PER_LINK)) @ np.swapaxes(inverse, -1, -2)
    images = images.reshape(len(links), PARAMETERS_PER_LINK, -1)
    blocks = np.linalg.inv(images @ np.swapaxes(images, -1, -2))
    spread = np.zeros((len(links), PARAMETERS_PER_LINK, len(links), PARAMETERS_PER_LINK))
    spread[range(len(links)), :, range(len(links)), :] = blocks
    return spread.reshape(prior.size, prior.size)


def possible_prior(parameters: NDArray, link_names: Sequence[str]) -> tuple[NDArray, list[str]]:
    """Make physically consistent bodies of those that cannot, as a URDF with massless links or zero inertias has them.

    What is possible stays as it is. A link without mass gets the smallest mass among the others (1 kg if none has any),
    at its frame: towards a prior, growing is punished in proportion and shrinking only by the logarithm, so that too
    large a guess costs less than one too small. A link with mass keeps mass and centre of mass; each second moment
    about it that is too small is raised to that of a steel ball of the link's mass, the smallest that a link can be.

    Args:
        parameters: (10 n,), finite.
        link_names: n names.

    Returns:
        Parameters (10 n,) and one sentence for each link that was changed.
    """
    links = np.array(parameters, float).reshape(-1, PARAMETERS_PER_LINK)
    massive = links[:, 0] > 0
    smallest = links[massive, 0].min() if massive.any() else 1.0
    changes = []
    for k, possible in enumerate(is_possible(links)):
        if possible:
            continue
        if not massive[k]:
            changes.append(f"{link_names[k]}: mass {links[k, 0]:g} kg, taken as a steel ball of {smallest:g} kg")
            links[k] = 0.0
            links[k, 0] = smallest
        else:
            changes.append(
                f"{link_names[k]}: inertia that no body of {links[k, 0]:g} kg has, its second moments raised to those "
                f"of a steel ball of that mass"
            )
        links[k] = _with_extent(links[k])
    return links.ravel(), changes


def _with_extent(body: NDArray) -> NDArray:
    """The body (10,), of positive mass, at least as extended in each direction as a steel ball."""
    mass, center = body[0], body[1:4] / body[0]
    ball = mass / 5 * (3 * mass / (4 * np.pi * _DENSEST)) ** (2 / 3)
    parts, directions = np.linalg.eigh(central_moments(body))
    extended = np.full((4, 4), mass)
    extended[:3, 3] = extended[3, :3] = mass * center
    extended[:3, :3] = (directions * np.maximum(parts, ball)) @ directions.T + mass * np.outer(center, center)
    return inertial_parameters(extended)
