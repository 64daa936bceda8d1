"""Regressors: torques as linear functions of the ten parameters of each link.

The torque of joint i is the power of the wrench on each link j that it moves on the twist that a unit velocity of joint
i gives that link; joints that mimic joint i add to the twist. Both are taken in the joint frame of link j, where the
wrench is a 6x10 matrix times the parameters (Atkeson, An and Hollerbach 1986, eq. 8), and that matrix is linear in
accelerations and products of angular velocities.

Twists, velocities and accelerations are all motion vectors (Featherstone, Rigid Body Dynamics Algorithms, 2008), here
with the linear part first: one constant 6x6 matrix takes them all to the next frame. In memory, samples are next to
each other, and what is summed over comes next.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynid_ros.model.arrays import blocks
from dynid_ros.model.chain import Chain
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC, skew, transformed

N_FEATURES = 12
N_MOTION = 2
"""Motion vectors before the twists: velocity and acceleration."""


def gravity_regressor(chain: Chain, gravity: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Matrix (N, n, 10 m) from the parameters about the link frames to the torques at rest in poses q (N, n)."""
    return torque_regressor(chain, gravity, (q, np.zeros_like(q), np.zeros_like(q)))


def torque_regressor(chain: Chain, gravity: np.ndarray, motion: Sequence[np.ndarray]) -> np.ndarray:
    """Matrix (N, n, 10 m) from the parameters about the link frames to the torques of q, qd and qdd, each (N, n).

    It is a view of an array (n, 10 m, N): samples of one entry are next to each other.
    """
    n_samples, n = motion[0].shape
    matrix = np.zeros((n, PARAMETERS_PER_LINK * chain.n_links, n_samples))
    rows = RegressorRows(chain, gravity)
    for block in blocks(n_samples):
        q, qd, qdd = (array[block] for array in motion)
        rows.fill(matrix[:, :, block], q, qd, qdd)
    return matrix.transpose(2, 0, 1)


class Taped(NamedTuple):
    """Motion vectors (k, 6, N) of one link in its joint frame, those of `Step`, and features."""

    vectors: np.ndarray
    features: np.ndarray


Runs = list[tuple[slice, slice]]
"""Joints, and where their twists are among the motion vectors of a link: those that are next to each other in both."""


class Step(NamedTuple):
    """How motion vectors come to a link from that before it: velocity, acceleration, the twists of joints that move it.

    Attributes:
        source: buffer of the vectors of the link before.
        target: buffer of the link's own.
        size: number of vectors that come.
        joint: what moves the link.
        place: where the twist of this joint is among the vectors; it is `size` unless it moved the link before, too.
        before: joints of the vectors that come.
        all: these, and the joint itself.
    """

    source: int
    target: int
    size: int
    joint: int
    place: int
    before: Runs
    all: Runs


@lru_cache(maxsize=16)
def steps(chain: Chain) -> list[Step]:
    """Steps to all links; a buffer is used again when all links that hang on its link are there."""
    waiting = [int(np.sum(chain.parents == link)) for link in range(-1, chain.n_links)]
    held_by: dict[int, int] = {-1: 0}
    movers: dict[int, list[int]] = {-1: []}
    found = []
    for link, parent in enumerate(chain.parents.tolist()):
        target = min(set(range(len(held_by) + 1)) - set(held_by.values()))
        before, joint = movers[parent], int(chain.drivers[link])
        own = before if joint in before else [*before, joint]
        place = N_MOTION + own.index(joint)
        found.append(Step(held_by[parent], target, N_MOTION + len(before), joint, place, _runs(before), _runs(own)))
        movers[link] = own
        waiting[parent + 1] -= 1
        if waiting[link + 1]:
            held_by[link] = target
        if not waiting[parent + 1]:
            del held_by[parent]
    return found


def _runs(joints: Sequence[int]) -> Runs:
    runs: Runs = []
    for place, joint in enumerate(joints, N_MOTION):
        if runs and runs[-1][0].stop == joint:
            rows, vectors = runs.pop()
            runs.append((slice(rows.start, joint + 1), slice(vectors.start, place + 1)))
        else:
            runs.append((slice(joint, joint + 1), slice(place, place + 1)))
    return runs


class RegressorRows:
    """Fills regressors of one arm, a block of samples at a time.

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.
        columns: (p,) which of the 10 m parameters, ascending; None: all.

    Attributes:
        to_joint: (m, 6, 6) what takes motion vectors to each joint frame, at its zero, from that of the link before.
        starts: (m + 1,) the first of the columns of each link, and their number.
        steps: from link to link.
        wrenches: for each link two arrays (columns, rows, 12), from features to wrenches of unit parameters: those of
            mass and mass moments with six rows, those of inertia with the moment's three.
    """

    def __init__(self, chain: Chain, gravity: np.ndarray, columns: np.ndarray | None = None):
        self.chain, self.gravity = chain, gravity
        chosen = np.arange(PARAMETERS_PER_LINK * chain.n_links) if columns is None else np.asarray(columns, dtype=int)
        self.to_joint = motion_matrices(chain.transforms)
        self.starts = np.searchsorted(chosen, PARAMETERS_PER_LINK * np.arange(chain.n_links + 1))
        self.steps = steps(chain)
        # What the parameters about the link frame are about the joint frame, and what wrench that takes.
        about_joint = transformed(np.eye(PARAMETERS_PER_LINK), chain.link_offsets[:, None])
        self.wrenches = []
        for link, parameters in enumerate(about_joint):
            own = chosen[self.starts[link] : self.starts[link + 1]] % PARAMETERS_PER_LINK
            wrench = (parameters[own] @ WRENCH.reshape(PARAMETERS_PER_LINK, -1)).reshape(-1, 6, N_FEATURES)
            self.wrenches.append((wrench[own < STATIC], wrench[own >= STATIC, 3:]))
        self._size = max(step.target for step in self.steps) + 2, max(step.size for step in self.steps) + 1, 6
        self._vectors = np.empty((*self._size, 0))

    def fill(
        self, matrix: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, tape: list[Taped] | None = None
    ) -> None:
        """Set a matrix (n, p, N) from the chosen parameters to the torques of q, qd and qdd, each (N, n).

        Entries of links that a joint does not move are zero whatever the motion, and left as they are. What `gradient`
        needs of each link is added to the `tape`, if there is one.
        """
        n_samples = len(q)
        if self._vectors.shape[-1] != n_samples:
            self._vectors = np.empty((*self._size, n_samples))
        # Velocity, acceleration and the twists of the joints before, in the frames before, at and after a joint.
        still, *buffers = self._vectors
        buffers[0][:N_MOTION] = 0.0
        # Gravity enters as an acceleration of the base upwards.
        buffers[0][1, :3] = -self.gravity[:, None]
        features = np.empty((N_FEATURES, n_samples))
        motion = JointMotion(self.chain, q, qd, qdd)
        for j, (step, parts) in enumerate(zip(self.steps, self.wrenches, strict=True)):
            before, after, k = buffers[step.source], buffers[step.target], step.size
            np.matmul(self.to_joint[j], before[:k], out=still[:k])
            motion.through(j, still[:k], after[:k])
            axis, ratio, is_new = 2 if self.chain.slides[j] else 5, self.chain.ratios[j], step.place == k
            if is_new:
                after[k] = 0.0
            after[step.place, axis] += ratio
            set_features(features, *after[:N_MOTION])
            if tape is not None:
                tape.append(Taped(after[: k + is_new].copy(), features.copy()))
            column = self.starts[j]
            for part in parts:
                n_columns, n_rows, _ = part.shape
                wrenches, columns = part @ features, slice(column, column + n_columns)
                if is_new:
                    # The twist of the joint itself is one component.
                    own = axis - (6 - n_rows)
                    matrix[step.joint, columns] = wrenches[:, own] if own >= 0 else 0.0
                    if ratio != 1.0:
                        matrix[step.joint, columns] *= ratio
                for rows, vectors in step.before:
                    np.einsum("irm,crm->icm", after[vectors, -n_rows:], wrenches, out=matrix[rows, columns])
                column += n_columns


class JointMotion:
    """What the joints do to motion vectors of each link, for a block of samples; q, qd and qdd are (N, n)."""

    def __init__(self, chain: Chain, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray):
        self.slides = chain.slides
        q, qd, qdd = chain.of_links(q, qd, qdd)
        angle = q.T.copy()
        angle[self.slides] = 0.0
        # Cosine and sine by the tangent of half the angle, which numpy has a vector instruction for.
        half = np.tan(0.5 * angle)
        scale = 1.0 / (1.0 + half * half)
        cos, sin = 2.0 * scale - 1.0, 2.0 * half * scale
        self.turn = np.stack([np.stack([cos, sin], axis=1), np.stack([-sin, cos], axis=1)], axis=1)
        self.rates = np.stack([qd.T, qdd.T], axis=1)
        signs = np.array([[1.0], [-1.0]])
        self.slide, self.slip = q.T[:, None] * signs, qd.T[:, None] * signs

    def through(self, j: int, still: np.ndarray, moved: np.ndarray) -> None:
        """Take motion vectors (k, 6, N) through the joint of link j.

        Velocity and acceleration, which come first, gain what the joint contributes.
        """
        shape = (len(still), 2, 3, still.shape[-1])
        still, moved = still.reshape(shape), moved.reshape(shape)
        np.einsum("abm,klbm->klam", self.turn[j], still[:, :, :2], out=moved[:, :, :2])
        moved[:, :, 2] = still[:, :, 2]
        velocity, acceleration = moved[:2]
        # Products with the axis take x from y, and y from x with the other sign.
        if self.slides[j]:
            moved[:, 0, :2] += still[:, 1, 1::-1] * self.slide[j]
            acceleration[0, :2] += velocity[1, 1::-1] * self.slip[j]
            moved[:2, 0, 2] += self.rates[j]
        else:
            acceleration[:, :2] += velocity[:, 1::-1] * self.slip[j]
            moved[:2, 1, 2] += self.rates[j]


def motion_matrices(transforms: np.ndarray) -> np.ndarray:
    """Matrices (n, 6, 6) that take motion vectors to frames of poses `transforms` (n, 4, 4)."""
    matrices = np.zeros((len(transforms), 6, 6))
    for matrix, transform in zip(matrices, transforms, strict=True):
        inverse = transform[:3, :3].T
        matrix[:3, :3] = matrix[3:, 3:] = inverse
        matrix[:3, 3:] = -inverse @ skew(transform[:3, 3])
    return matrices


def set_features(features: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> None:
    """Set what wrenches are linear in, (12, N), of motion vectors (6, N).

    The acceleration of the point at the origin, which the spatial one is not; the angular acceleration; the squares of
    the angular velocity and its products xy, yz, zx.
    """
    v, w = velocity[[0, 1, 2, 0, 1]], velocity[[3, 4, 5, 3, 4]]
    features[:6] = acceleration
    features[:3] += w[1:4] * v[2:]
    features[:3] -= w[2:] * v[1:4]
    np.multiply(w[:3], w[:3], out=features[6:9])
    np.multiply(w[:3], w[1:4], out=features[9:])


def _wrench_tensor() -> np.ndarray:
    """Tensor (10, 6, 12) from parameters and features to force and moment about the frame's origin."""
    ax, ay, az, bx, by, bz, xx, yy, zz, xy, yz, xz = np.eye(N_FEATURES)
    columns = (
        {0: ax, 1: ay, 2: az},
        {0: -yy - zz, 1: xy + bz, 2: xz - by, 4: -az, 5: ay},
        {0: xy - bz, 1: -xx - zz, 2: yz + bx, 3: az, 5: -ax},
        {0: xz + by, 1: yz - bx, 2: -xx - yy, 3: -ay, 4: ax},
        {3: bx, 4: xz, 5: -xy},
        {3: by - xz, 4: bx + yz, 5: xx - yy},
        {3: bz + xy, 4: zz - xx, 5: bx - yz},
        {3: -yz, 4: by, 5: xy},
        {3: yy - zz, 4: bz - xy, 5: by + xz},
        {3: yz, 4: -xz, 5: bz},
    )
    tensor = np.zeros((PARAMETERS_PER_LINK, 6, N_FEATURES))
    for column, entries in enumerate(columns):
        for row, entry in entries.items():
            tensor[column, row] = entry
    return tensor


WRENCH = _wrench_tensor()


# Gradients of scalar functions of the torque regressor with respect to the motion.
# The adjoint method: what the function gains from each entry of the regressor is carried back, link by link, to
# motion vectors and from those to joint positions, velocities and accelerations. All gradients together cost some two
# evaluations of the regressor, however many joints and samples there are.


class DifferentiableRegressor:
    """Regressor of chosen parameters, and gradients of functions of it.

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.
        columns: (p,) which of the 10 m parameters, ascending; None: all.
    """

    def __init__(self, chain: Chain, gravity: np.ndarray, columns: np.ndarray | None = None):
        self._rows = RegressorRows(chain, gravity, columns)
        self._tape: list[Taped] = []

    def __getstate__(self) -> dict[str, object]:
        """Without the last motion."""
        return {"_rows": self._rows}

    def matrix(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Regressor (n, p, N) of a motion of (N, n) each, remembered for `gradient`."""
        n_samples, n = q.shape
        matrix = np.zeros((n, int(self._rows.starts[-1]), n_samples))
        self._motion = q, qd, qdd
        self._tape = []
        self._rows.fill(matrix, q, qd, qdd, self._tape)
        return matrix

    def gradient(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gradients (N, n) of sum(weights * matrix) by q, qd and qdd, of the last matrix; weights (n, p, N)."""
        chain = self._rows.chain
        joints = JointMotion(chain, *self._motion)
        n_samples = len(self._motion[0])
        by_motion = np.empty((3, chain.n_links, n_samples))
        # By the motion vectors in the frame of each link, of all that comes after it.
        by_vectors: list[np.ndarray | None] = [None] * chain.n_links
        for j in reversed(range(chain.n_links)):
            step, (vectors, features) = self._rows.steps[j], self._tape[j]
            k, after = step.size, by_vectors[j]
            carried = np.zeros((k, 6, n_samples)) if after is None else after[:k]
            by_features = np.zeros_like(features)
            column = self._rows.starts[j]
            for part in self._rows.wrenches[j]:
                n_columns, n_rows, n_features = part.shape
                if not n_columns:
                    continue
                own = weights[:, column : column + n_columns]
                twists, *others = (np.einsum("icm,irm->crm", own[i], vectors[v, -n_rows:]) for i, v in step.all)
                for more in others:
                    twists += more
                by_features += part.reshape(-1, n_features).T @ twists.reshape(-1, n_samples)
                for rows, places in step.before:
                    carried[places, -n_rows:] += np.einsum("icm,crm->irm", own[rows], part @ features)
                column += n_columns
            _add_features(carried[:N_MOTION], by_features, vectors[0])
            by_motion[:, j] = _through(joints, j, carried, vectors[:k])
            parent = chain.parents[j]
            if parent >= 0:
                moved, others = self._rows.to_joint[j].T @ carried, by_vectors[parent]
                by_vectors[parent] = moved if others is None else others + moved
        by_q, by_qd, by_qdd = (chain.of_joints(by_link).T for by_link in by_motion)
        return by_q, by_qd, by_qdd


def _add_features(carried: np.ndarray, by_features: np.ndarray, velocity: np.ndarray) -> None:
    """Add to `carried` (2, 6, N), by velocity and acceleration, what comes by way of features (12, N)."""
    by_velocity, by_acceleration = carried
    by_acceleration += by_features[:6]
    force, squares, products = by_features[:3], by_features[6:9], by_features[9:]
    v, w = velocity[[0, 1, 2, 0, 1]], velocity[[3, 4, 5, 3, 4]]
    f = force[[0, 1, 2, 0, 1]]
    # Of force . (w x v).
    by_velocity[:3] += f[1:4] * w[2:] - f[2:] * w[1:4]
    by_velocity[3:] += v[1:4] * f[2:] - v[2:] * f[1:4]
    # Of the squares of w, and of its products xy, yz, zx.
    by_velocity[3:] += 2.0 * squares * w[:3] + products * w[1:4] + products[[2, 0, 1]] * w[2:]


def _through(
    joints: JointMotion, j: int, carried: np.ndarray, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Take `carried` (k, 6, N) back through the joint of link j, in place; gradients (N,) by its own motion."""
    shape = (len(carried), 2, 3, carried.shape[-1])
    back, moved = carried.reshape(shape), vectors.reshape(shape)
    slides = joints.slides[j]
    part = 0 if slides else 1
    by_velocity, by_acceleration = back[0, part, 2].copy(), back[1, part, 2].copy()
    rate = joints.slip[j, 0]
    velocity, accelerated = moved[0], back[1]
    turning = moved
    if slides:
        x, y = accelerated[0, :2]
        by_velocity += x * velocity[1, 1] - y * velocity[1, 0]
        back[0, 1, 1] += x * rate
        back[0, 1, 0] -= y * rate
        x, y = back[:, 0, 0], back[:, 0, 1]
        by_position = np.einsum("km,km->m", x, moved[:, 1, 1]) - np.einsum("km,km->m", y, moved[:, 1, 0])
        slide = joints.slide[j, 0]
        back[:, 1, 1] += x * slide
        back[:, 1, 0] -= y * slide
    else:
        x, y = accelerated[:, 0], accelerated[:, 1]
        by_velocity += np.sum(x * velocity[:, 1] - y * velocity[:, 0], axis=0)
        back[0, :, 1] += x * rate
        back[0, :, 0] -= y * rate
        # What turned, without what the joint's own velocity added to the acceleration.
        turning = moved.copy()
        turning[1, :, 0] -= velocity[:, 1] * rate
        turning[1, :, 1] += velocity[:, 0] * rate
        x, y = back[:, :, 0], back[:, :, 1]
        by_position = np.einsum("klm,klm->m", x, turning[:, :, 1]) - np.einsum("klm,klm->m", y, turning[:, :, 0])
        back[:, :, :2] = np.einsum("bam,klbm->klam", joints.turn[j], back[:, :, :2])
    return by_position, by_velocity, by_acceleration


# The wrench that moves a body at the tip, as a linear function of the body's ten parameters.
# A load on a wrist force sensor is the last link of a chain, of which all six components are measured, not one
# (Atkeson, An and Hollerbach 1986, eqs. 4, 7 and 8).


_BY_AXIS = WRENCH.transpose(1, 0, 2).reshape(-1, N_FEATURES)


class TipMotion(NamedTuple):
    """Motion vectors (6, N) in the frame of the tip link, linear part first.

    Attributes:
        velocity: twist of the tip.
        acceleration: its derivative by time in the tip's own axes, without gravity.
        weight: acceleration upwards that stands for gravity.
    """

    velocity: np.ndarray
    acceleration: np.ndarray
    weight: np.ndarray


def wrench_regressor(chain: Chain, gravity: np.ndarray, motion: Sequence[np.ndarray]) -> np.ndarray:
    """Matrix (N, 6, 10) from the parameters of a body at the tip to the wrench that q, qd and qdd, each (N, n), take.

    The tip exerts it on the body: force, and moment about the origin of the frame of the tip link, in that frame, about
    which the parameters are too. Without gravity it is zero at rest.
    """
    entries = np.empty((len(_BY_AXIS), len(motion[0])))
    for block in blocks(len(motion[0])):
        moved = tip_motion(chain, gravity, *(array[block] for array in motion))
        entries[:, block] = _BY_AXIS @ wrench_features(moved.velocity, moved.acceleration + moved.weight)
    return _matrices(entries)


def wrench_features(velocity: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """What the wrench is linear in, (12, N), of the tip's motion vectors (6, N)."""
    features = np.empty((N_FEATURES, velocity.shape[1]))
    set_features(features, velocity, acceleration)
    return features


def of_features(features: np.ndarray) -> np.ndarray:
    """Wrench regressor (N, 6, 10) of features (12, N), or of sums of them."""
    return _matrices(_BY_AXIS @ features)


def tip_motion(chain: Chain, gravity: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> TipMotion:
    """Motion of the tip link at q, qd and qdd, each (N, n)."""
    joints = JointMotion(chain, q, qd, qdd)
    moved = np.zeros((3, 6, len(q)))
    moved[2, :3] = -gravity[:, None]
    after, matrices = np.empty_like(moved), motion_matrices(chain.transforms)
    for j in chain.path(chain.tip_link):
        joints.through(j, matrices[j] @ moved, after)
        moved, after = after, moved
    (matrix,) = motion_matrices((chain.link_offsets[chain.tip_link] @ chain.tip_offset)[None])
    return TipMotion(*(matrix @ moved))


def _matrices(entries: np.ndarray) -> np.ndarray:
    """(N, 6, 10) of entries (60, N), axis by axis."""
    return entries.reshape(6, PARAMETERS_PER_LINK, -1).transpose(2, 0, 1)
