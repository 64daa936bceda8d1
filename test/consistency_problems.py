"""Define consistent least-squares problems, and solve them as semidefinite programs for comparison."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from dynid_ros.model import RobotModel

ROBOTS = {
    "ur10": ("ur_description/urdf/ur10_robot.urdf", "wrist_3_link"),
    "panda": ("panda_description/urdf/panda.urdf", "panda_link8"),
    "kinova": ("kinova_description/robots/kinova.urdf", "j2s6s200_end_effector"),
}


@dataclass(frozen=True)
class Data:
    """Problem: regressor (m, p), right-hand side (m,), prior (10 n,), and nonnegative columns."""

    R: np.ndarray
    z: np.ndarray
    prior: np.ndarray
    nonnegative: list[int]


def pseudo_inertia(parameters: np.ndarray) -> np.ndarray:
    """Return the pseudo-inertia (4, 4) of parameters (10,): Σ = ½ tr(I) 1 − I."""
    xx, xy, xz, yy, yz, zz = parameters[4:]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    matrix = np.empty((4, 4))
    matrix[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    matrix[:3, 3] = matrix[3, :3] = parameters[1:4]
    matrix[3, 3] = parameters[0]
    return matrix


def sum_point_masses(masses: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the parameters (10,) of point masses (k,) at (k, 3)."""
    inertia = np.einsum("k,kij->ij", masses, [p @ p * np.eye(3) - np.outer(p, p) for p in points])
    return np.concatenate([[masses.sum()], masses @ points, inertia[np.triu_indices(3)]])


def random_link(rng: np.random.Generator) -> np.ndarray:
    """Return parameters (10,) of a link of 0.1 to 15 kg of realistic size."""
    points = rng.normal(size=3) * 0.1 + rng.normal(size=(12, 3)) * rng.uniform(0.01, 0.1, 3)
    return sum_point_masses(10 ** rng.uniform(-1, 1.2) * rng.dirichlet(np.ones(12)), points)


def random_data(rng: np.random.Generator, n: int) -> Data:
    """Return a problem of n links with up to four bounded and two free parameters, rank-deficient in half of cases."""
    bounded = int(rng.integers(0, 5))
    free = int(rng.integers(0, 3))
    p = 10 * n + bounded + free
    m = int(rng.integers(bounded + free + 3, p)) if rng.random() < 0.5 else p
    R = np.triu(rng.normal(size=(m, p))) * 10 ** rng.uniform(0, 3, p)
    prior = np.concatenate([random_link(rng) for _ in range(n)])
    true = np.concatenate([random_link(rng) for _ in range(n)])
    others = rng.normal(size=bounded + free)
    others[:bounded] = np.abs(others[:bounded]) * (rng.random(bounded) < 0.6)
    columns = list(range(10 * n, 10 * n + bounded))
    return Data(R, R @ np.concatenate([true, others]) + rng.normal(size=m), prior, columns)


def robot_data(robot: RobotModel, rng: np.random.Generator, sigma: float = 0.5, samples: int = 2000) -> Data:
    """Return noisy torques of a random motion with friction, rotors and offsets, and a wrong prior."""
    n = robot.n_joints
    q, qd, qdd = (
        rng.uniform(-2, 2, (samples, n)),
        rng.uniform(-1.5, 1.5, (samples, n)),
        rng.normal(size=(samples, n)) * 3,
    )
    joint = np.eye(n)
    friction = [x[:, :, None] * joint for x in (qd, np.sign(qd), qdd, np.ones_like(q))]
    tall = np.concatenate([robot.torque_regressor(q, qd, qdd), *friction], axis=2).reshape(samples * n, -1)
    # The prior has wrong masses and stretched inertias.
    true = robot.parameters.reshape(n, 10)
    prior = np.empty_like(true)
    for k, link in enumerate(true):
        stretch = np.diag(rng.uniform(0.7, 1.4, 4))
        moved = stretch @ pseudo_inertia(link) @ stretch
        inertia = np.trace(moved[:3, :3]) * np.eye(3) - moved[:3, :3]
        prior[k] = np.concatenate([moved[3, 3:], moved[:3, 3], inertia[np.triu_indices(3)]])
    coefficients = np.concatenate(
        [rng.uniform(0, 2, n), rng.uniform(0, 2, n), rng.uniform(0, 0.02, n), rng.normal(size=n)]
    )
    torque = tall @ np.concatenate([true.ravel(), coefficients]) + sigma * rng.normal(size=samples * n)
    triangle = np.linalg.qr(np.column_stack([tall, torque]) / sigma, mode="r")
    columns = list(range(10 * n, 13 * n))
    # The last row is the constant residual of least squares.
    return Data(triangle[:-1, :-1], triangle[:-1, -1], prior.ravel(), columns)


def objective(data: Data, weight: float, x: np.ndarray) -> float:
    """Return ½ ‖R x − z‖² + γ Σ d(P ‖ P⁰) from its definition."""
    total = 0.5 * np.sum((data.R @ x - data.z) ** 2)
    for link, nominal in zip(x[: data.prior.size].reshape(-1, 10), data.prior.reshape(-1, 10), strict=True):
        ratio = np.linalg.solve(pseudo_inertia(nominal), pseudo_inertia(link))
        total += weight * (np.trace(ratio) - 4 - np.linalg.slogdet(ratio)[1])
    return float(total)


def sdp_objective(data: Data, weight: float) -> float:
    """Return the optimum by cvxpy and Clarabel, or NaN if Clarabel finds no accurate one."""
    cvxpy = pytest.importorskip("cvxpy")
    expressions: list = []
    penalty = 0
    for nominal in data.prior.reshape(-1, 10):
        factor = np.linalg.cholesky(pseudo_inertia(nominal))
        relative = cvxpy.Variable((4, 4), symmetric=True)
        P = factor @ relative @ factor.T
        moments = [P[1, 1] + P[2, 2], -P[0, 1], -P[0, 2], P[0, 0] + P[2, 2], -P[1, 2], P[0, 0] + P[1, 1]]
        expressions += [P[3, 3], P[0, 3], P[1, 3], P[2, 3], *moments]
        penalty += cvxpy.trace(relative) - 4 - cvxpy.log_det(relative)
    others = data.R.shape[1] - data.prior.size
    constraints: Sequence = []
    x = cvxpy.hstack(expressions)
    if others:
        scaled = cvxpy.Variable(others)
        constraints = [scaled[k - data.prior.size] >= 0 for k in data.nonnegative]
        x = cvxpy.hstack([x, cvxpy.multiply(scaled, 1 / np.linalg.norm(data.R[:, data.prior.size :], axis=0))])
    cost = 0.5 * cvxpy.sum_squares(data.R @ x - data.z) + weight * penalty
    problem = cvxpy.Problem(cvxpy.Minimize(cost / weight), constraints)
    # Division by the weight scales the entropy to the order of the tolerances.
    for tolerance in (1e-11, 1e-9, 1e-8):  # some problems need lower accuracy
        try:
            problem.solve(solver="CLARABEL", tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance)
        except cvxpy.SolverError:
            continue
        if problem.status == cvxpy.OPTIMAL:
            return weight * float(problem.value)
    return float("nan")


def hostile_data(rng: np.random.Generator) -> tuple[Data, float]:
    """Return data that favor inconsistent parameters and a weight: noise, low rank, empty columns, tiny weights."""
    data = random_data(rng, int(rng.integers(1, 8)))
    R, z = (
        data.R.copy(),
        data.z * rng.choice([1e-6, 1.0, -1.0, 1e3]) + rng.normal(size=len(data.z)) * 10 ** rng.uniform(0, 6),
    )
    kind = rng.integers(0, 4)
    if kind == 0:  # rank three
        R = R @ rng.normal(size=(R.shape[1], 3)) @ rng.normal(size=(3, R.shape[1])) / R.shape[1]
    elif kind == 1:  # empty and opposite columns
        R[:, rng.integers(0, R.shape[1], 5)] = 0.0
        R[:, -1] = -R[:, -2]
    elif kind == 2:  # no information at all
        R *= 0.0
    return Data(R, z, data.prior, data.nonnegative), 10 ** rng.uniform(-10, 2)


def is_consistent(data: Data, x: np.ndarray) -> bool:
    """Return whether links have positive pseudo-inertias and bounded parameters are not negative."""
    smallest = [np.linalg.eigvalsh(pseudo_inertia(link))[0] for link in x[: data.prior.size].reshape(-1, 10)]
    return bool(np.isfinite(x).all() and min(smallest) > 0 and np.all(x[data.nonnegative] >= 0))
