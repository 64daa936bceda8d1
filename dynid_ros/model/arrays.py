"""Samples of motion: checks of their shapes, products of vectors, and blocks of samples."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError, ModelError

BLOCK = 1000
"""Samples per block: intermediate arrays stay small whatever the length of a recording, fit in the cache, and are below
the size at which BLAS starts threads."""
MAX_MAGNITUDE = 1e12
"""Largest accepted number in SI units; products of larger numbers may overflow."""


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross product (..., 3, N) along the axis before the last, several times faster than `numpy.cross`."""
    product = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        product[..., i, :] = a[..., j, :] * b[..., k, :] - a[..., k, :] * b[..., j, :]
    return product


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the scalar product (..., N) along the axis before the last."""
    return a[..., 0, :] * b[..., 0, :] + a[..., 1, :] * b[..., 1, :] + a[..., 2, :] * b[..., 2, :]


def blocks(n_samples: int) -> Iterator[slice]:
    """Yield slices that cover `n_samples` samples."""
    for start in range(0, n_samples, BLOCK):
        yield slice(start, start + BLOCK)


def joint_samples(joint_names: Sequence[str], **arrays: ArrayLike) -> list[np.ndarray]:
    """Return arrays of one row per sample and one column per joint, as floats.

    Raises:
        ModelError: an array is not (N, n), with the same N for all.
    """
    samples = [np.asarray(array, dtype=float) for array in arrays.values()]
    for name, array in zip(arrays, samples, strict=True):
        if array.ndim != 2 or array.shape[1] != len(joint_names) or len(array) != len(samples[0]):
            raise ModelError(
                f"{name} has shape {array.shape}; expected (N, {len(joint_names)}): one row per sample, one column per "
                f"joint ({', '.join(joint_names)}), the same N for {', '.join(arrays)}"
            )
    return samples


def require_finite(
    joint_names: Sequence[str], error: type[DynidError], first: int = 0, /, **arrays: np.ndarray
) -> None:
    """Raise an error for arrays (N, n) that are not finite; name array, joint and sample, counted from `first`."""
    for name, array in arrays.items():
        for block in blocks(len(array)):
            is_finite = np.isfinite(array[block])
            if not is_finite.all():
                row, joint = np.argwhere(~is_finite)[0]
                raise error(
                    f"{name} of {joint_names[joint]} is {array[block][row, joint]} in sample "
                    f"{first + block.start + row}; leave such samples out"
                )


def per_joint(
    value: ArrayLike,
    joints: Sequence[object],
    what: str,
    *,
    error: type[DynidError] = ModelError,
    least: float = -np.inf,
) -> np.ndarray:
    """Return one number per joint (n,), given one number for all joints or n numbers.

    Args:
        value: one number, or n.
        joints: names of the n joints.
        what: name of the value in errors.
        error: exception to raise.
        least: lowest accepted value. If it is finite, NaN and values above `MAX_MAGNITUDE` are refused, too.
    """
    values = np.atleast_1d(np.array(value, dtype=float))
    if values.shape not in ((1,), (len(joints),)):
        raise error(
            f"{what}: {values.size} values; give one for all joints or one for each of {', '.join(map(str, joints))}"
        )
    values = np.broadcast_to(values, len(joints)).copy()
    for joint, number in zip(joints, values, strict=True):
        if np.isfinite(least) and not least <= number <= MAX_MAGNITUDE:
            bound = "" if least == -MAX_MAGNITUDE else f"of at least {least:g}, "
            raise error(f"{what} of joint '{joint}' is {number}; expected a number {bound}up to {MAX_MAGNITUDE:g}")
    return values


def finite_vector(values: ArrayLike, size: int, what: str) -> np.ndarray:
    """Return a copy of `size` numbers; `what` is their name in errors.

    Raises:
        ModelError: there are more or fewer numbers, or one is not finite or above `MAX_MAGNITUDE`.
    """
    vector = np.array(values, dtype=float)
    if vector.shape != (size,):
        raise ModelError(f"{what}: shape {vector.shape}; expected ({size},)")
    if not np.isfinite(vector).all():
        raise ModelError(
            f"{what}: entry {np.flatnonzero(~np.isfinite(vector))[0]} is not finite; expected finite numbers"
        )
    if (np.abs(vector) > MAX_MAGNITUDE).any():
        raise ModelError(f"{what}: {vector.tolist()}; expected numbers up to {MAX_MAGNITUDE:g}")
    return vector
