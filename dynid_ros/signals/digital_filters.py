"""Filters, spectra, peaks and runs of sampled signals, along the first axis; scipy.signal takes 0.4 s to import."""

from collections.abc import Iterator
from math import factorial

import numpy as np
from numpy.typing import NDArray

BLOCK = 32
"""Samples that a filter takes at a time."""


def butterworth_poles(order: int, corner: float, rate: float) -> NDArray:
    """Return the (order,) poles in the z plane of a Butterworth low-pass; corner frequency and rate in Hz."""
    angles = np.pi * (2 * np.arange(order) + order + 1) / (2 * order)
    analog = np.tan(np.pi * corner / rate) * (np.cos(angles) + 1j * np.sin(angles))
    return (1 + analog) / (1 - analog)


def butterworth(order: int, corner: float, rate: float) -> list[NDArray]:
    """Return the filter's second-order sections of gain 1 at rest: (2, 3) coefficients of numerator and denominator."""
    poles = butterworth_poles(order, corner, rate)
    sections = [np.array([[1, 2, 1], [1, -2 * pole.real, abs(pole) ** 2]]) for pole in poles[: order // 2]]
    if order % 2:
        sections.append(np.array([[1, 1, 0], [1, -poles[order // 2].real, 0]]))
    return [section * [[section[1].sum() / section[0].sum()], [1.0]] for section in sections]


def run(sections: list[NDArray], values: NDArray) -> NDArray:
    """Return values (N, …) behind the sections, as if the first had lasted for ever.

    BLOCK samples at a time: their responses to themselves and to the state before them are products of matrices.
    """
    count = -(-len(values) // BLOCK)
    rest = np.zeros((count * BLOCK, values[0].size))
    rest[: len(values)] = (values - values[:1]).reshape(len(values), -1)
    rest = rest.reshape(count, BLOCK, -1)
    # A step of states and input; then BLOCK of them, the states of which are `free` and `forced`.
    n = 2 * len(sections)
    step = np.array([_step(sections, unit) for unit in np.eye(n + 1)]).T
    states, outputs = np.eye(n, n + BLOCK), np.zeros((BLOCK, n + BLOCK))
    for k in range(BLOCK):
        given = np.vstack([states, np.eye(1, n + BLOCK, n + k)])
        *states, outputs[k] = step @ given
    states = np.array(states)
    forced, state = states[:, n:] @ rest, np.zeros((count, n, rest.shape[2]))
    for k in range(count - 1):
        state[k + 1] = states[:, :n] @ state[k] + forced[k]
    rest = outputs[:, n:] @ rest + outputs[:, :n] @ state
    return values[:1] + rest.reshape(count * BLOCK, -1)[: len(values)].reshape(values.shape)


def _step(sections: list[NDArray], state: NDArray) -> NDArray:
    """Return two states of each section and the output, from the states before and the input."""
    *before, value = state
    after = []
    for (numerator, denominator), first, second in zip(sections, before[::2], before[1::2], strict=True):
        driving, value = value, numerator[0] * value + first
        after += [numerator[1] * driving - denominator[1] * value + second]
        after += [numerator[2] * driving - denominator[2] * value]
    return np.array([*after, value])


def run_both_ways(sections: list[NDArray], values: NDArray, padding: int) -> NDArray:
    """Return values (N, …) filtered forward and backward, continued point-symmetrically by `padding` < N samples."""
    before, after = (2 * values[:1] - values[padding:0:-1], 2 * values[-1:] - values[-2 : -padding - 2 : -1])
    forward = run(sections, np.concatenate([before, values, after]))
    return run(sections, forward[::-1])[::-1][padding : len(values) + padding]


def derivative_weights(length: int, degree: int, order: int, step: float, position: int) -> NDArray:
    """Return the (length,) weights of samples in the derivative of their least-squares polynomial at one of them.

    Args:
        length: number of samples.
        degree: of the polynomial.
        order: of the derivative.
        step: between samples, s.
        position: of the sample, from 0.

    """
    powers = (np.arange(length) - position) ** np.arange(degree + 1.0)[:, None]
    wanted = np.zeros(degree + 1)
    wanted[order] = factorial(order) / step**order
    return np.linalg.lstsq(powers, wanted, rcond=None)[0]


def local_derivative(values: NDArray, length: int, degree: int, order: int, step: float) -> NDArray:
    """Return a derivative (N, …) by polynomials through `length` samples each (Savitzky & Golay 1964), N >= length.

    At the ends it is that of the outermost polynomial.
    """
    half, inner = length // 2, len(values) - length + 1
    weights = [derivative_weights(length, degree, order, step, position) for position in range(length)]
    derivative = np.empty_like(values)
    derivative[:half] = np.tensordot(np.array(weights[:half]), values[:length], axes=1)
    derivative[half : half + inner] = sum(w * values[k : k + inner] for k, w in enumerate(weights[half]))
    derivative[half + inner :] = np.tensordot(np.array(weights[half + 1 :]), values[-length:], axes=1)
    return derivative


def power_density(values: NDArray, rate: float, window: NDArray, degree: int = 1) -> tuple[NDArray, NDArray]:
    """Return frequencies (K,), Hz, and one-sided power densities (K, n) of values (N, n), by Welch's average.

    Args:
        values: (N, n).
        rate: Hz.
        window: (L,), L <= N, of the parts, which overlap by half.
        degree: of the polynomial that is taken off each part.

    """
    length = len(window)
    trend = np.linalg.qr(np.vander(np.linspace(-1, 1, length), degree + 1))[0]

    def densities() -> Iterator[NDArray]:
        for start in range(0, len(values) - length + 1, length - length // 2):
            part = values[start : start + length] - values[start]  # rounding must not look like motion at standstill
            yield np.abs(np.fft.rfft(window[:, None] * (part - trend @ (trend.T @ part)), axis=0)) ** 2

    parts = list(densities())
    density = sum(parts) / (len(parts) * rate * np.sum(window**2))
    density[1 : (length + 1) // 2] *= 2
    return np.fft.rfftfreq(length, 1 / rate), density


def squared_hann(length: int) -> NDArray:
    """Return a (length,) window of which slow motion leaks into high frequencies as ω⁻¹⁰ in power."""
    return np.sin(np.pi * np.arange(length) / length) ** 4


def correlate(first: NDArray, second: NDArray) -> NDArray:
    """Return the (N + M − 1,) sums of products of the first (N,) with the second (M,) at lags 1 − M to N − 1."""
    length = len(first) + len(second) - 1
    size = 1 << (length - 1).bit_length()
    return np.fft.irfft(np.fft.rfft(first, size) * np.fft.rfft(second[::-1], size), size)[:length]


def peaks(values: NDArray) -> NDArray:
    """Return the indices of values (N,) above both neighbours; of a plateau, its middle."""
    starts = np.flatnonzero(np.concatenate([[True], np.diff(values) != 0]))
    ends = np.append(starts[1:], len(values)) - 1
    level = values[starts]
    tops = 1 + np.flatnonzero((level[1:-1] > level[:-2]) & (level[1:-1] > level[2:]))
    return (starts[tops] + ends[tops]) // 2


def true_runs(mask: NDArray) -> NDArray:
    """Return (K, 2) of each run of True in a mask (N,): its first index and one past its last."""
    return np.flatnonzero(np.diff(mask, prepend=False, append=False)).reshape(-1, 2)


def longest_run(mask: NDArray) -> tuple[int, int]:
    """Return first index and length of the longest run of True in a mask (N,); zeros where there is none."""
    found = true_runs(mask)
    if not len(found):
        return 0, 0
    first, end = found[np.argmax(np.diff(found, axis=1))]
    return int(first), int(end - first)
