"""The ten inertial parameters of a rigid body, `[m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]`.

The inertia is about the origin of the frame, with tensor elements for `Ixy`, `Ixz`, `Iyz` (Atkeson, An and Hollerbach
1986, eq. 8). SI units; leading dimensions of arrays are bodies.

The 4x4 pseudo-inertia is positive definite exactly for bodies that can exist:
P = ∫ [r; 1] [r; 1]ᵀ dm = [[Σ, m c], [m cᵀ, m]] with Σ = ½ tr(I) 1 − I, about the link frame. A body of positive density
that fills space has P ≻ 0, and each P ≻ 0 belongs to such a body; this includes the positive mass and the triangle
inequality of the principal moments (Wensing, Kim and Slotine 2018, "Linear matrix inequalities for physically
consistent inertial parameter identification").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

PARAMETERS_PER_LINK = 10
STATIC = 4
"""Number of parameters (mass and mass moments, the first ones) that act at rest and need force."""
LOAD_NAMES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


@dataclass(frozen=True)
class Body:
    """A rigid body.

    Attributes:
        mass: mass, kg.
        centre: (3,) centre of mass in the link's frame, m; NaN without mass.
        inertia: (3,) principal moments about the centre of mass, ascending, kg m²; NaN without mass.
        possible: whether such a body can exist.
    """

    mass: float
    centre: NDArray
    inertia: NDArray
    possible: bool

    @classmethod
    def of(cls, parameters: NDArray) -> Body:
        """Return the body that has parameters (10,)."""
        mass = float(parameters[0])
        possible = bool(is_possible(parameters))
        central = central_moments(parameters) if mass > 0 else np.full((3, 3), np.nan)
        if not np.isfinite(central).all():  # no mass, or hardly any, has no centre
            return cls(mass, np.full(3, np.nan), np.full(3, np.nan), possible)
        second = np.linalg.eigvalsh(central)
        return cls(mass, parameters[1:4] / mass, np.sort(second.sum() - second), possible)


def skew(vector: np.ndarray) -> np.ndarray:
    """Return the matrix (3, 3) of the cross product with `vector` (3,)."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def inertia_matrix(parameters: np.ndarray) -> np.ndarray:
    """Return the inertia tensors (..., 3, 3) about the frame's origin of parameters (..., 10)."""
    return parameters[..., [4, 5, 6, 5, 7, 8, 6, 8, 9]].reshape(*parameters.shape[:-1], 3, 3)


def from_center_of_mass(mass: float, center: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Return the parameters (10,) of a body with `inertia` (3, 3) about its centre of mass at `center` (3,)."""
    arm = skew(center)
    about_origin = inertia - mass * arm @ arm
    return np.concatenate([[mass], mass * center, about_origin[np.triu_indices(3)]])


def transformed(parameters: np.ndarray, transform: np.ndarray) -> np.ndarray:
    """Return the parameters (..., 10) of bodies in other frames; `transform` (..., 4, 4) holds their frames' poses."""
    # The pseudo-inertia, unlike the inertia, transforms as a 4x4 matrix on homogeneous points.
    return inertial_parameters(transform @ pseudo_inertia(parameters) @ np.swapaxes(transform, -1, -2))


ROUNDING_FRACTION = 1e-13
"""Fraction of the second moments about the frame below which central ones can be rounding errors of the parameters."""
STEEL_DENSITY = 8000.0
"""In kg/m³."""


def pseudo_inertia(parameters: NDArray) -> NDArray:
    """Return the pseudo-inertias (..., 4, 4) of parameters (..., 10)."""
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
    """Return the parameters (..., 10) of symmetric pseudo-inertias (..., 4, 4)."""
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
    """Return the second moments (..., 3, 3) about the centre of mass, Σ − m c cᵀ, of bodies with mass."""
    matrix = pseudo_inertia(parameters)
    moment = matrix[..., :3, 3]
    return matrix[..., :3, :3] - moment[..., :, None] * moment[..., None, :] / matrix[..., 3:, 3:]


def is_possible(parameters: NDArray) -> NDArray:
    """Return a mask (...) of the bodies with parameters (..., 10) that can exist.

    Their mass is positive, and the second moments about the centre of mass exceed rounding errors of the parameters.
    Bodies with numbers that are not finite cannot exist.
    """
    parameters = np.asarray(parameters, float)
    usable = np.isfinite(parameters).all(axis=-1) & (parameters[..., 0] > 0)
    body = np.where(usable[..., None], parameters, np.eye(PARAMETERS_PER_LINK)[0])
    about_frame = 0.5 * (body[..., 4] + body[..., 7] + body[..., 9])
    return usable & (np.linalg.eigvalsh(central_moments(body))[..., 0] > ROUNDING_FRACTION * about_frame)


def log_cholesky(parameters: NDArray) -> NDArray:
    """Return coordinates (..., 10) [α, d1, d2, d3, s12, s23, s13, t1, t2, t3] of possible bodies.

    P = U Uᵀ with U = e^α [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]] (Rucker and Wensing
    2022, "Smooth parameterization of rigid-body inertia"); t is the centre of mass. Each point of R¹⁰
    is a possible body.

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
    """Return the parameters (..., 10) of log-Cholesky coordinates (..., 10)."""
    upper = np.zeros((*coordinates.shape[:-1], 4, 4))
    upper[..., range(3), range(3)] = np.exp(coordinates[..., 1:4])
    upper[..., [0, 1, 0], [1, 2, 2]] = coordinates[..., 4:7]
    upper[..., :3, 3] = coordinates[..., 7:]
    upper[..., 3, 3] = 1.0
    matrix = upper @ np.swapaxes(upper, -1, -2) * np.exp(2 * coordinates[..., 0])[..., None, None]
    return inertial_parameters(matrix)


def divergence(parameters: NDArray, prior: NDArray) -> NDArray:
    """Return the entropic divergence (...) of possible bodies from priors: −log det(P P⁰⁻¹) + tr(P⁰⁻¹ P) − 4.

    It is zero for equal bodies, positive otherwise, and independent of frame and units (Lee, Wensing and Park
    2019, "Geometric robot dynamic identification: a convex programming approach").
    """
    factor = np.linalg.cholesky(pseudo_inertia(prior))
    half = np.linalg.solve(factor, np.linalg.cholesky(pseudo_inertia(parameters)))
    stretch = np.linalg.svd(half, compute_uv=False) ** 2
    return np.sum(stretch - 1 - np.log(stretch), axis=-1)


def parameter_spread(prior: NDArray) -> NDArray:
    """Return the inverse (10 n, 10 n) of the Hessian of Σ `divergence` at possible bodies (10 n,), block by link.

    To second order the divergence of P is ½ ‖L⁻¹ (P − P⁰) L⁻ᵀ‖² with P⁰ = L Lᵀ. So the inverse is the covariance of a
    prior with standard deviations of about 100 % for the mass and each principal second moment.
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
    """Replace bodies that cannot exist, such as massless links of a URDF, by physically consistent ones.

    A link without mass gets the smallest mass among the others (1 kg if all lack mass), at its frame. This guess is
    rather too large than too small, because the divergence from a prior grows linearly with the body but only
    logarithmically as it shrinks. A link with mass keeps mass and centre of mass; each second moment about the centre
    that is too small is raised to that of a steel ball of the link's mass, the smallest that a link can be.

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
    """Return the body (10,), of positive mass, extended to at least a steel ball in each direction."""
    mass = body[0]
    center = body[1:4] / body[0]
    ball = mass / 5 * (3 * mass / (4 * np.pi * STEEL_DENSITY)) ** (2 / 3)
    parts, directions = np.linalg.eigh(central_moments(body))
    extended = np.full((4, 4), mass)
    extended[:3, 3] = extended[3, :3] = mass * center
    extended[:3, :3] = (directions * np.maximum(parts, ball)) @ directions.T + mass * np.outer(center, center)
    return inertial_parameters(extended)


COMPLEX_STEP = 1e-30
"""Step of complex-step derivatives, which have no rounding error."""
MAX_AXIS_ERROR_RAD = 0.35
"""Standard error above which the direction of a principal axis is meaningless."""
AXIS_PAIRS = ((1, 2), (0, 2), (0, 1))
"""For each axis the other two; if their moments are equal, their directions in the plane across the axis are free."""


@dataclass(frozen=True, eq=False)
class LoadBody:
    """A rigid body and the covariance of its parameters; standard errors follow by the delta method.

    Attributes:
        parameters: (10,) about the frame's origin; NaN if unknown.
        covariance: (10, 10) of the parameters.
    """

    parameters: NDArray
    covariance: NDArray

    @property
    def mass(self) -> float:
        """Mass, kg."""
        return float(self.parameters[0])

    @property
    def mass_error(self) -> float:
        """Standard error of the mass, kg."""
        return float(np.sqrt(max(self.covariance[0, 0], 0.0)))

    @property
    def center(self) -> NDArray:
        """Centre of mass (3,) in the frame, m."""
        return _center(self.parameters)

    @property
    def center_errors(self) -> NDArray:
        """Standard errors (3,) of the centre of mass, m."""
        return np.sqrt(np.diag(self._through(_center)))

    @property
    def inertia(self) -> NDArray:
        """Inertia (3, 3) about the centre of mass, in the axes of the frame, kg m²."""
        return inertia_matrix(np.concatenate([np.zeros(4), _central(self.parameters)]))

    @property
    def inertia_errors(self) -> NDArray:
        """Standard errors (6,) of Ixx Ixy Ixz Iyy Iyz Izz about the centre of mass, kg m²."""
        return np.sqrt(np.diag(self._through(_central)))

    @property
    def moments(self) -> NDArray:
        """Principal moments (3,) about the centre of mass, ascending, kg m²."""
        return self._principal[0]

    @property
    def axes(self) -> NDArray:
        """Principal axes (3, 3) in the frame, right-handed, one per column, in the order of the moments."""
        return self._principal[1]

    @cached_property
    def moment_errors(self) -> NDArray:
        """Standard errors (3,) of the principal moments, kg m²."""
        return np.sqrt(np.diag(self._in_axes)[[0, 3, 5]])

    @cached_property
    def axis_errors(self) -> NDArray:
        """Standard errors (3,) of the turn about each principal axis, which mixes the other two, rad."""
        # A perturbation E of the tensor turns axes i and j by E_ij / (λ_j − λ_i).
        deviations = np.sqrt(np.diag(self._in_axes)[[4, 2, 1]])
        gaps = np.array([self.moments[j] - self.moments[i] for i, j in AXIS_PAIRS])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(gaps > 0, deviations / gaps, np.inf)

    @property
    def alike(self) -> list[tuple[int, int]]:
        """Pairs of principal moments that are too close to each other for meaningful axes."""
        return [pair for pair, error in zip(AXIS_PAIRS, self.axis_errors, strict=True) if error > MAX_AXIS_ERROR_RAD]

    @cached_property
    def _principal(self) -> tuple[NDArray, NDArray]:
        if not np.isfinite(self.inertia).all():
            return np.full(3, np.nan), np.full((3, 3), np.nan)
        moments, axes = np.linalg.eigh(self.inertia)
        return moments, axes * np.array([1.0, 1.0, np.linalg.det(axes)])

    @property
    def _in_axes(self) -> NDArray:
        """Covariance (6, 6) of the tensor about the centre of mass in its principal axes."""
        axes = np.nan_to_num(self.axes)

        def turned(parameters: NDArray) -> NDArray:
            tensor = inertia_matrix(np.concatenate([np.zeros(4), _central(parameters)]))
            return (axes.T @ tensor @ axes)[np.triu_indices(3)]

        return self._through(turned)

    def _through(self, function: Callable[[NDArray], NDArray]) -> NDArray:
        """Return the covariance of a function of the parameters, by complex-step derivatives."""
        parameters = np.nan_to_num(self.parameters)
        if not parameters[0]:
            size = len(function(np.ones(10)))
            return np.full((size, size), np.nan)
        slopes = np.stack(
            [function(parameters + 1j * COMPLEX_STEP * unit).imag / COMPLEX_STEP for unit in np.eye(10)], axis=1
        )
        return slopes @ self.covariance @ slopes.T


def _center(parameters: NDArray) -> NDArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return parameters[1:4] / parameters[0]


def _central(parameters: NDArray) -> NDArray:
    """Return the inertia (6,) about the centre of mass."""
    center = _center(parameters)
    arm = skew(center).astype(parameters.dtype) if np.iscomplexobj(parameters) else skew(center)
    return (inertia_matrix(parameters) + parameters[0] * arm @ arm)[np.triu_indices(3)]
