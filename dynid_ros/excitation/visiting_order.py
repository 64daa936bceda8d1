"""A short way through all poses: nearest neighbour, then 2-opt (Croes 1958)."""

from numpy.typing import NDArray

GAIN = 1e-9


def visiting_order(times: NDArray) -> list[int]:
    """Order of K poses, each visited once, by symmetric `times` (K, K) from one to the other; ends where it likes.

    The nearest neighbour is taken from each pose in turn as a start, and stretches of the shortest way are reversed
    while that shortens it.
    """
    count = len(times)
    ways = [_nearest(times, start) for start in range(count)]
    way = min(ways, key=lambda nodes: length(times, nodes))
    shortened = True
    while shortened:
        shortened = False
        for i in range(count - 1):
            for j in range(i + 1, count):
                before = times[way[i - 1], way[i]] if i else 0.0
                after = times[way[j], way[j + 1]] if j + 1 < count else 0.0
                instead = (times[way[i - 1], way[j]] if i else 0.0) + (
                    times[way[i], way[j + 1]] if j + 1 < count else 0.0
                )
                if instead < before + after - GAIN:
                    way[i : j + 1] = way[i : j + 1][::-1]
                    shortened = True
    return way


def length(times: NDArray, way: list[int]) -> float:
    """Time that a way through the poses takes, s."""
    return float(times[way[:-1], way[1:]].sum())


def _nearest(times: NDArray, start: int) -> list[int]:
    way = [start]
    left = set(range(len(times))) - {start}
    while left:
        way.append(min(left, key=lambda pose: (times[way[-1], pose], pose)))
        left.remove(way[-1])
    return way
