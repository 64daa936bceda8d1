"""Test the motion watch for motions in both directions."""

import pytest

from dynid_ros.control.motion_watch import MIN_DEPARTURE, MIN_SPEED, MotionWatch, Verdict

STEP_S = 0.01
SPEED_RAD_S = 3.0 * MIN_SPEED


class Watched:
    """Two joints, of which joint `joint` moves at a given speed after its torque changed by `push`."""

    def __init__(self, push, *, joint=1, velocity=(0.0, 0.0)):
        self.watch = MotionWatch()
        self.joint = joint
        self.time = 0.0
        self.position = [0.3, -0.4]
        self.watch.begin(self.position, velocity, [push * (k == joint) for k in range(2)])

    def move(self, speed, progress, carried=()):
        """Move until the joint departs, and return the verdict."""
        for _ in range(100):
            verdict = self.step(speed, progress, carried)
            if verdict is not Verdict.QUIET:
                break
        return verdict

    def step(self, speed, progress, carried=()):
        self.time += STEP_S
        self.position[self.joint] += STEP_S * speed
        velocity = [speed * (k == self.joint) for k in range(2)]
        return self.watch.update(self.time, self.position, velocity, progress, carried=carried)


@pytest.mark.parametrize("push", [2.0, -2.0])
@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_motion_along_the_torque_rises_and_against_it_sinks(push, direction):
    verdict = Watched(push).move(direction * SPEED_RAD_S, 0.5)
    assert verdict is (Verdict.RISES if push * direction > 0 else Verdict.SINKS)


@pytest.mark.parametrize("push", [2.0, -2.0])
def test_repeated_departure_at_one_torque_is_caused_by_it(push):
    watched = Watched(push)
    direction = push / abs(push)
    verdicts = []
    for _ in range(6):
        verdicts.append(watched.move(direction * SPEED_RAD_S, 0.5))
        if verdicts[-1] is Verdict.ROSE_BY_ITSELF:
            break
        assert watched.step(0.0, 0.4) is Verdict.QUIET, "the joint stops when the torque is taken back"
    assert verdicts[-1] is Verdict.ROSE_BY_ITSELF
    assert len(verdicts) == 3


@pytest.mark.parametrize("push", [2.0, -2.0])
def test_departures_at_different_torques_are_caused_by_a_hand(push):
    watched = Watched(push)
    direction = push / abs(push)
    for k in range(8):
        assert watched.move(direction * SPEED_RAD_S, 0.3 + 0.2 * (k % 2)) is Verdict.RISES
        watched.step(0.0, 0.2)


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_moving_arm_is_guided(direction):
    assert Watched(2.0, velocity=(0.0, direction * SPEED_RAD_S)).move(SPEED_RAD_S, 0.5) is Verdict.QUIET
    assert Watched(2.0, velocity=(0.0, direction * 0.5 * MIN_SPEED)).move(SPEED_RAD_S, 0.5) is Verdict.RISES


@pytest.mark.parametrize("push", [2.0, -2.0])
def test_continued_motion_is_guided(push):
    watched = Watched(push)
    direction = push / abs(push)
    assert watched.move(direction * SPEED_RAD_S, 0.5) is Verdict.RISES
    for _ in range(100):
        watched.step(direction * SPEED_RAD_S, 0.4)
    assert not watched.watch.is_on


@pytest.mark.parametrize("push", [2.0, -2.0])
@pytest.mark.parametrize("carried", [0.5, 0.1])
def test_repeated_rest_on_the_holding_spring_is_sinking(push, carried):
    watched = Watched(push)
    direction = -push / abs(push)
    verdicts = []
    for _ in range(3):
        assert watched.move(direction * SPEED_RAD_S, 0.5) is Verdict.SINKS
        for _ in range(250):
            verdicts.append(watched.step(0.0, 0.5, [0.0, carried]))
            if verdicts[-1] is not Verdict.SINKS:
                break
    assert verdicts[-1] is (Verdict.SANK_BY_ITSELF if carried > 0.2 else Verdict.QUIET)


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_small_or_slow_motion_is_ignored(direction):
    watched = Watched(2.0)
    assert [watched.step(direction * SPEED_RAD_S, 0.5) for _ in range(int(MIN_DEPARTURE / SPEED_RAD_S / STEP_S))] == [
        Verdict.QUIET
    ] * 16
    slow = Watched(2.0)
    assert all(slow.step(direction * 0.9 * MIN_SPEED, 0.5) is Verdict.QUIET for _ in range(200))
