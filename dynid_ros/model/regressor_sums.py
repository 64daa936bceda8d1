"""Weighted sums of torque regressors over a few samples, as filters need them, in a control loop's time.

A torque regressor is bilinear in the joints' unit twists and the links' wrenches of unit parameters (Atkeson, An and
Hollerbach 1986, eqs 8 and 15). So straight-line scalar code gives what these are made of, for each sample as it comes,
and for each sum a handful of products of stacked matrices does the rest for all samples and links at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.one_sample import compiled
from dynid_ros.model.one_sample_motion import ORIGIN, PER_LINK, ROTATION, motion_source
from dynid_ros.model.regressor import N_FEATURES, WRENCH
from dynid_ros.model.robot import RobotModel

_Floats = Sequence[float]
_NEXT, _LAST = [1, 2, 0], [2, 0, 1]


class RegressorSums:
    """Sums of regressors over samples.

    Args:
        robot: the arm.

    Attributes:
        features: function from q, qd and qdd, n floats each, to a tuple of what the sums need of one sample.
        size: length of that tuple.

    """

    def __init__(self, robot: RobotModel):
        chain = robot.chain
        n = chain.n_joints
        self.size = PER_LINK * n
        source = motion_source(chain, robot.gravity)
        self.features: Callable[[_Floats, _Floats, _Floats], tuple[float, ...]] = compiled(source, "motion", tuple)
        about_joint = transformed(np.eye(PARAMETERS_PER_LINK), chain.link_offsets[:, None])
        maps = np.einsum("lkp,pwf->lfwk", about_joint, WRENCH)
        self._wrenches = np.ascontiguousarray(maps.reshape(n, N_FEATURES, 6 * PARAMETERS_PER_LINK))
        # Where the entries of transforms [R 0; p x R, R] and of twists are among features, p x R and zero.
        place = np.arange(self.size + 9 * n + 1)
        links = place[: self.size].reshape(n, PER_LINK)
        rotations, levers = links[:, ROTATION].reshape(n, 3, 3), place[self.size : -1].reshape(n, 3, 3)
        upper = np.concatenate([rotations, np.full((n, 3, 3), place[-1])], axis=2)
        transforms = np.concatenate([upper, np.concatenate([levers, rotations], axis=2)], axis=1)
        self._transforms = transforms.transpose(1, 0, 2).ravel()
        # The twist is that of z, linear part first.
        axes = transforms[range(n), :, np.where(chain.prismatic, 5, 2)]
        self._twists = np.roll(axes, 3, axis=1).ravel()
        origins = np.broadcast_to(links[:, ORIGIN, None], (n, 3, 3))
        self._products = [
            (origins[:, one].ravel(), rotations[:, other].ravel()) for one, other in ((_NEXT, _LAST), (_LAST, _NEXT))
        ]
        self._acts = np.tri(n).T[:, :, None]

    def __call__(self, features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Matrices (m, n, 10 n) from the parameters about the link frames to sums of torques.

        Args:
            features: (N, size) of the samples.
            weights: (m, N) of the samples in each sum.

        """
        (sums, samples), n = weights.shape, len(self._acts)
        links = features.reshape(samples, n, PER_LINK)
        (p, r), (other_p, other_r) = self._products
        levers = features.take(p, 1) * features.take(r, 1) - features.take(other_p, 1) * features.take(other_r, 1)
        entries = np.concatenate([features, levers, np.zeros((samples, 1))], axis=1)
        # Forces and moments about the base's origin, of those in joint frames.
        transforms = entries.take(self._transforms, 1).reshape(samples, 6, 6 * n)
        twists = entries.take(self._twists, 1).reshape(samples, n, 6)
        twists = (twists @ transforms).reshape(samples, n, n, 6) * self._acts
        wrenches = (links[..., :N_FEATURES].transpose(1, 0, 2) @ self._wrenches).reshape(n, 6 * samples, -1)
        weighted = weights[:, None, :, None] * twists.transpose(2, 1, 0, 3)[:, None]
        matrices = weighted.reshape(n, sums * n, 6 * samples) @ wrenches
        return matrices.reshape(n, sums, n, -1).transpose(1, 2, 0, 3).reshape(sums, n, -1)
