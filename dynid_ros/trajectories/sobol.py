"""Sobol's sequence: points spread evenly over a cube, however many of them are taken.

Its direction numbers are those of Joe and Kuo 2008 ("Constructing Sobol sequences with better two-dimensional
projections", SIAM J. Sci. Comput. 30), its points those of `scipy.stats.qmc.Sobol(n, scramble=False)`, without the half
second that it takes to import scipy.stats.
"""

import numpy as np
from numpy.typing import NDArray

BITS = 30
POLYNOMIALS = (1, 3, 7, 11, 13, 19, 25, 37, 41, 47, 55, 59, 61, 67, 91, 97, 103, 109, 115)
"""Primitive polynomials over the integers modulo 2, a bit a coefficient, one for each axis."""
FIRST = (
    (1,),
    (1,),
    (1, 3),
    (1, 3, 1),
    (1, 1, 1),
    (1, 1, 3, 3),
    (1, 3, 5, 13),
    (1, 1, 5, 5, 17),
    (1, 1, 5, 5, 5),
    (1, 1, 7, 11, 19),
    (1, 1, 5, 1, 1),
    (1, 1, 1, 3, 11),
    (1, 3, 5, 5, 31),
    (1, 3, 3, 9, 7, 49),
    (1, 1, 1, 15, 21, 21),
    (1, 3, 1, 13, 27, 49),
    (1, 1, 1, 15, 7, 5),
    (1, 3, 1, 15, 13, 25),
    (1, 1, 5, 5, 19, 61),
)
"""First direction numbers of each axis, as many as its polynomial has roots."""


def sobol(count: int, n: int) -> NDArray:
    """Points (count, n) of the unit cube; the first is its corner at zero."""
    if n > len(POLYNOMIALS):
        from scipy.stats import qmc  # noqa: PLC0415  # it knows the numbers of 21 201 axes

        return qmc.Sobol(n, scramble=False).random(count)
    index = np.arange(count)
    gray = index ^ (index >> 1)
    points = np.zeros((count, n), dtype=np.int64)
    for bit in range(int(gray.max(initial=0)).bit_length()):
        points[(gray >> bit) & 1 == 1] ^= _DIRECTIONS[bit, :n]
    return points / 2.0**BITS


def _directions() -> NDArray:
    """(BITS, axes) by which a bit of the index changes a point."""
    table = np.zeros((BITS, len(POLYNOMIALS)), dtype=np.int64)
    for axis, (polynomial, first) in enumerate(zip(POLYNOMIALS, FIRST, strict=True)):
        degree = polynomial.bit_length() - 1
        numbers = [1] * BITS if axis == 0 else list(first)
        for k in range(len(numbers), BITS):
            number = numbers[k - degree] ^ (numbers[k - degree] << degree)
            for step in range(1, degree):
                if polynomial >> (degree - step) & 1:
                    number ^= numbers[k - step] << step
            numbers.append(number)
        table[:, axis] = [number << (BITS - 1 - k) for k, number in enumerate(numbers)]
    return table


_DIRECTIONS = _directions()
