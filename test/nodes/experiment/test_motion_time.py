import time

import pytest

rclpy = pytest.importorskip("rclpy")

from rclpy.clock import ROSClock  # noqa: E402
from rclpy.time import Time  # noqa: E402

from dynid_ros.nodes.experiment.watch import MAX_CLOCK_STEP_S, MotionTime  # noqa: E402


class Computer:
    """A node's clock, steady clock and date, all set by hand."""

    def __init__(self, monkeypatch):
        self.steady, self.simulated, self.is_simulated = 100.0, 0.0, False
        self.clock = ROSClock()
        monkeypatch.setattr(time, "monotonic", lambda: self.steady)
        monkeypatch.setattr(ROSClock, "ros_time_is_active", property(lambda _: self.is_simulated))
        monkeypatch.setattr(ROSClock, "now", lambda _: Time(nanoseconds=round(self.simulated * 1e9)))

    def get_clock(self):
        return self.clock


@pytest.fixture(name="computer")
def fixture_computer(monkeypatch):
    return Computer(monkeypatch)


def test_the_computers_clock_may_be_set(computer):
    motion_time = MotionTime(computer)
    computer.steady += 0.2
    computer.simulated += 1e6  # what the node's clock says
    assert motion_time.now() == pytest.approx(0.2)
    computer.steady += 5.0  # an overloaded computer, not a jump
    assert motion_time.now() == pytest.approx(5.2)
    assert motion_time.take_jump() == 0.0
    assert motion_time.stalled == 0.0


@pytest.mark.parametrize("jump", [-50.0, -1e-3, MAX_CLOCK_STEP_S + 0.01, 1e6])
def test_simulated_time_is_followed_and_its_jumps_are_left_out(computer, jump):
    computer.is_simulated, computer.simulated = True, 60.0
    motion_time = MotionTime(computer)
    computer.simulated += 0.3
    assert motion_time.now() == pytest.approx(0.3)
    computer.simulated += jump
    assert motion_time.now() == pytest.approx(0.3)
    computer.simulated += 0.1
    assert motion_time.now() == pytest.approx(0.4)
    assert motion_time.take_jump() == pytest.approx(jump)
    assert motion_time.take_jump() == 0.0


def test_one_clock_in_place_of_the_other_is_a_jump(computer):
    motion_time = MotionTime(computer)
    computer.is_simulated, computer.simulated = True, 100.1
    assert motion_time.now() == 0.0
    assert motion_time.take_jump() == pytest.approx(0.1)


def test_simulated_time_that_stands_still(computer):
    computer.is_simulated = True
    motion_time = MotionTime(computer)
    computer.steady += 0.7
    assert motion_time.stalled == pytest.approx(0.7)
    computer.simulated += 0.01
    assert motion_time.stalled == 0.0
