"""Weighted sums of torque regressors over a few samples, as filters need them, in a control loop's time.

A torque regressor is bilinear in the joints' unit twists and the wrenches of unit parameters on the links (Atkeson, An
and Hollerbach 1986, eqs 8 and 15). Straight-line scalar code computes the factors of this product for each sample as it
comes; for each sum a handful of products of stacked matrices then serves all samples and links at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dynid_ros.model.generated_code import Lines, compiled, constants, function_text
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.recursion import frame_lines, motion_lines
from dynid_ros.model.regressor import N_FEATURES, WRENCH_TENSOR
from dynid_ros.model.robot import RobotModel

PER_LINK = N_FEATURES + 12
"""Numbers per link and sample: features of the wrench, rotation and origin of the joint frame."""
ROTATION = slice(N_FEATURES, N_FEATURES + 9)
ORIGIN = slice(N_FEATURES + 9, PER_LINK)
NEXT_AXES = [1, 2, 0]
LAST_AXES = [2, 0, 1]


class RegressorSums:
    """Sums of regressors over samples.

    Args:
        robot: the arm.

    Attributes:
        features: function from q, qd and qdd, n floats each, to a tuple of the factors of one sample.
        size: length of that tuple.
    """

    def __init__(self, robot: RobotModel):
        chain = robot.chain
        n = chain.n_links
        self.size = PER_LINK * n
        self.features: Callable[[Sequence[float], Sequence[float], Sequence[float]], tuple[float, ...]]
        self.features = compiled(features_source(robot), "features", tuple)
        about_joint = transformed(np.eye(PARAMETERS_PER_LINK), chain.link_offsets[:, None])
        maps = np.einsum("lkp,pwf->lfwk", about_joint, WRENCH_TENSOR)
        self._wrenches = np.ascontiguousarray(maps.reshape(n, N_FEATURES, 6 * PARAMETERS_PER_LINK))
        # Indices of the entries of the transforms [R 0; p x R, R] and of the twists among features, p x R and zero.
        place = np.arange(self.size + 9 * n + 1)
        links = place[: self.size].reshape(n, PER_LINK)
        rotations = links[:, ROTATION].reshape(n, 3, 3)
        levers = place[self.size : -1].reshape(n, 3, 3)
        upper = np.concatenate([rotations, np.full((n, 3, 3), place[-1])], axis=2)
        transforms = np.concatenate([upper, np.concatenate([levers, rotations], axis=2)], axis=1)
        self._transforms = transforms.transpose(1, 0, 2).ravel()
        # The twist is that of z, linear part first.
        axes = transforms[range(n), :, np.where(chain.slides, 5, 2)]
        self._twists = np.roll(axes, 3, axis=1).ravel()
        origins = np.broadcast_to(links[:, ORIGIN, None], (n, 3, 3))
        self._products = [
            (origins[:, one].ravel(), rotations[:, other].ravel())
            for one, other in ((NEXT_AXES, LAST_AXES), (LAST_AXES, NEXT_AXES))
        ]
        self._acts = chain.moves[:, :, None].astype(float)
        self._chain = chain

    def __call__(self, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the matrices (k, n, 10 m) from the parameters about the link frames to sums of torques.

        Args:
            features: (N, size) of the samples.
            weights: (k, N) of the samples in each sum.
        """
        (sums, samples), n = weights.shape, len(self._acts)
        links = features.reshape(samples, n, PER_LINK)
        (p, r), (other_p, other_r) = self._products
        levers = features.take(p, 1) * features.take(r, 1) - features.take(other_p, 1) * features.take(other_r, 1)
        entries = np.concatenate([features, levers, np.zeros((samples, 1))], axis=1)
        # The transforms take wrenches in joint frames to forces and moments about the base's origin.
        transforms = entries.take(self._transforms, 1).reshape(samples, 6, 6 * n)
        twists = entries.take(self._twists, 1).reshape(samples, n, 6)
        twists = (twists @ transforms).reshape(samples, n, n, 6) * self._acts
        wrenches = (links[..., :N_FEATURES].transpose(1, 0, 2) @ self._wrenches).reshape(n, 6 * samples, -1)
        weighted = weights[:, None, :, None] * twists.transpose(2, 1, 0, 3)[:, None]
        matrices = weighted.reshape(n, sums * n, 6 * samples) @ wrenches
        of_links = matrices.reshape(n, sums, n, -1).transpose(2, 1, 0, 3).reshape(n, sums, -1)
        return self._chain.of_joints(of_links).transpose(1, 0, 2)


def features_source(robot: RobotModel) -> str:
    """Return the text of a function `features(q, qd, qdd)` of lists of n floats with 24 m results.

    Each link has the 12 features of `regressor.WRENCH_TENSOR` in its joint frame, and the rotation (3, 3) and the
    origin of that frame in the base frame.
    """
    lines = Lines()
    motions = motion_lines(lines, robot.chain, constants(robot.gravity))
    results = []
    for motion, (axes, origin) in zip(motions, frame_lines(lines, robot.chain, motions), strict=True):
        results += [*motion.acceleration, *motion.angular_acceleration, *motion.products]
        results += [*(axis[k] for k in range(3) for axis in axes), *origin]
    return function_text("features", {"q": "q", "v": "qd", "a": "qdd"}, lines, results, robot.n_joints, given="")
