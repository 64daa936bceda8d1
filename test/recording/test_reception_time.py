import pytest

from dynid_ros.recording import bag_writer as reception_time
from dynid_ros.recording.bag_writer import ReceptionTime

SECOND = 10**9


class Clocks:
    """Stand in for the module `time`."""

    def __init__(self):
        self.steady, self.set = 50 * SECOND, 1_700_000_000 * SECOND

    def time_ns(self):
        return self.steady + self.set

    def monotonic_ns(self):
        return self.steady


@pytest.fixture
def clocks(monkeypatch):
    clocks = Clocks()
    monkeypatch.setattr(reception_time, "time", clocks)
    return clocks


def test_times_are_those_of_the_middleware(clocks):
    times = ReceptionTime()
    for delay in (0, 10**6, 9 * SECOND):
        clocks.steady += 10 * SECOND
        assert not times.look()
        assert times.of("/a", clocks.time_ns() - delay) == clocks.time_ns() - delay
    assert times.jump == 0.0


@pytest.mark.parametrize("jump", [-3600.0, -0.2, 0.2, 1e6])
def test_a_clock_that_is_set_does_not_show(clocks, jump):
    times = ReceptionTime()
    clocks.steady += SECOND
    before = [clocks.time_ns() + k * 10**6 for k in range(20)]  # wait in the queue while the clock is set
    clocks.steady += 20 * 10**6
    clocks.set += round(jump * SECOND)
    after = [clocks.time_ns() + k * 10**6 for k in range(20)]
    clocks.steady += 20 * 10**6
    assert times.look()
    assert not times.look()
    found = [times.of("/a", received) for received in before + after]
    assert found == [before[0] + k * 10**6 for k in range(40)]
    assert times.jump == pytest.approx(jump)
    assert times.of("/b", after[3]) == found[23]


def test_a_small_step_back_keeps_the_order_of_a_topic(clocks):
    times = ReceptionTime()
    first = times.of("/a", clocks.time_ns())
    clocks.set -= SECOND // 50
    assert not times.look()
    assert times.of("/a", clocks.time_ns()) == first
    clocks.steady += SECOND // 20
    assert times.of("/a", clocks.time_ns()) == clocks.time_ns()
