"""Efforts as joint_trajectory_controller commands them, on an arm whose joint hangs out by a weight known by hand."""

import numpy as np
import pytest
from pendulum import LENGTH, MASS

from dynid_ros.errors import TrajectoryError
from dynid_ros.simulation import Drives, SimulatedArm, TrajectoryController, TrajectoryPoints

WEIGHT = -MASS * LENGTH * 9.80665
"""Torque that holds the pendulum at zero, where it hangs out horizontally and falls towards positive angles."""
STEP = 0.004


class Bench:
    def __init__(self, robot, **settings):
        drives = Drives(coulomb=0.0, viscous=0.0)
        self.arm = SimulatedArm(robot, drives=drives, start=[0.0], servo_model=False)
        self.controller = TrajectoryController(self.arm, **settings)
        self.robot = robot

    def follow(self, *points, delay=0.0):
        """Points of time, position and effort, or of time and position."""
        columns = list(zip(*points, strict=True))
        effort = [[value] for value in columns[2]] if len(columns) > 2 else None
        self.controller.follow(
            TrajectoryPoints(self.robot.joint_names, columns[0], [[p] for p in columns[1]], effort=effort), delay
        )

    def run(self, seconds):
        for _ in range(round(seconds / STEP)):
            self.controller.update()
            self.arm.step(STEP)
        return float(self.arm.position[0])

    @property
    def effort(self):
        """Of the trajectory alone, at rest: what the servo's position error does not hold."""
        stiffness = self.arm._servo.gains.stiffness[0]
        return float(self.arm.torque[0] + stiffness * (self.arm.position[0] - self.arm._motion.at(self.arm.time)[0][0]))


@pytest.fixture
def bench(pendulum):
    return lambda **settings: Bench(pendulum, **settings)


def test_the_servo_without_model_sags_by_weight_over_stiffness_and_effort_lifts_it(bench):
    bench = bench()
    stiffness = bench.arm._servo.gains.stiffness[0]
    assert bench.run(2.0) == pytest.approx(-WEIGHT / stiffness, rel=0.01)
    bench.follow((0.0, 0.0, WEIGHT))
    assert bench.run(2.0) == pytest.approx(0.0, abs=-WEIGHT / stiffness * 1e-3)


def test_effort_goes_linearly_from_point_to_point_and_stays(bench):
    bench = bench()
    bench.run(1.0)
    bench.follow((1.0, 0.0, WEIGHT), (2.0, 0.0, 0.5 * WEIGHT))
    found = [(bench.run(0.5), bench.effort)[1] for _ in range(6)]
    expected = [0.5, 1.0, 0.75, 0.5, 0.5, 0.5]
    assert found == pytest.approx(WEIGHT * np.array(expected), abs=0.05 * -WEIGHT)  # it moves meanwhile


def test_a_trajectory_without_effort_takes_it_away(bench):
    bench = bench()
    bench.follow((0.0, 0.0, WEIGHT))
    bench.run(0.5)
    bench.follow((1.0, 0.0))
    bench.run(0.2)
    assert bench.effort == pytest.approx(0.0, abs=0.02 * -WEIGHT)


@pytest.mark.parametrize("keeps", [True, False])
def test_an_abort_holds_the_place_and_a_stale_effort_or_none(bench, keeps):
    bench = bench(tolerance=0.005, keeps_effort=keeps)
    bench.follow((0.0, 0.0, WEIGHT))
    bench.run(0.5)
    assert bench.controller.aborts == 0
    bench.arm.push([0.0, 0.0, 0.0, 0.0, 70.0, 0.0], duration=0.2)
    bench.follow((2.0, 0.0, WEIGHT))
    bench.run(0.3)
    assert bench.controller.aborts == 1
    place = bench.run(0.5)
    assert place > 0.002
    assert bench.effort == pytest.approx(WEIGHT if keeps else 0.0, abs=0.02 * -WEIGHT)
    bench.follow((0.5, place, 0.3 * WEIGHT))
    bench.run(1.0)
    assert bench.effort == pytest.approx(0.3 * WEIGHT, abs=0.02 * -WEIGHT)


def test_a_command_that_is_not_repeated_is_dropped_after_the_timeout(bench):
    bench = bench(timeout=0.5, keeps_effort=False)
    for _ in range(5):
        bench.follow((0.0, 0.0, WEIGHT))
        bench.run(0.4)
    assert bench.controller.aborts == 0
    assert bench.effort == pytest.approx(WEIGHT, abs=0.02 * -WEIGHT)
    bench.run(0.6)
    assert bench.controller.aborts == 1
    assert bench.effort == pytest.approx(0.0, abs=0.02 * -WEIGHT)


@pytest.mark.parametrize("effort", [[[1.0, 2.0]], [[np.nan]]])
def test_efforts_that_are_none_are_refused(bench, effort):
    bench = bench()
    with pytest.raises(TrajectoryError, match="effort of the trajectory"):
        bench.controller.follow(TrajectoryPoints(bench.robot.joint_names, [0.0], [[0.0]], effort=effort))
