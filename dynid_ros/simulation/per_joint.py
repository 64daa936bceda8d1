"""Settings that are one number for all joints, or one per joint."""

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError

LARGEST = 1e12
"""Of any setting in its SI unit: what is computed with larger ones may be beyond all numbers."""


def per_joint(name: str, values: ArrayLike, n_joints: int, minimum: float = -np.inf) -> np.ndarray:
    """`values` as an array (n,).

    Raises:
        DynidError: the wrong number of values, or one that is no number up to 1e12 or below the minimum; says which
            setting.

    """
    array = np.array(values, dtype=float)
    if array.shape not in {(), (1,), (n_joints,)} or not np.all((np.abs(array) <= LARGEST) & (array >= minimum)):
        bound = f" up to {LARGEST:g}" if minimum == -np.inf else f" of at least {minimum:g}, up to {LARGEST:g}"
        raise DynidError(
            f"{name} is {array.tolist()}; expected one finite number{bound} for all joints, or {n_joints} of them"
        )
    return np.zeros(n_joints) + array
