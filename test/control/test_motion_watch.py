"""The watch of the motion alone, to both sides."""

import pytest

from dynid_ros.control.motion_watch import MIN_DEPARTURE, MIN_SPEED, MotionWatch, Verdict

STEP_S = 0.01
SPEED = 3.0 * MIN_SPEED


class Watched:
    """Two joints, one of which moves as it is told; the torque of joint `pushed` changes by `push`."""

    def __init__(self, push, *, joint=1, velocity=(0.0, 0.0)):
        self.watch, self.joint, self.time = MotionWatch(), joint, 0.0
        self.position = [0.3, -0.4]
        self.watch.begin(self.position, velocity, [push * (k == joint) for k in range(2)])

    def move(self, speed, progress, carried=()):
        """Move until the joint departs, and return what the watch sees."""
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
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_joint_rises_where_it_moves_the_way_of_the_torque(push, way):
    verdict = Watched(push).move(way * SPEED, 0.5)
    assert verdict is (Verdict.RISES if push * way > 0 else Verdict.SINKS)


@pytest.mark.parametrize("push", [2.0, -2.0])
def test_departures_at_the_same_torque_are_the_torques(push):
    watched, way = Watched(push), push / abs(push)
    verdicts = []
    for _ in range(6):
        verdicts.append(watched.move(way * SPEED, 0.5))
        if verdicts[-1] is Verdict.ROSE_BY_ITSELF:
            break
        assert watched.step(0.0, 0.4) is Verdict.QUIET, "it stopped as the torque went back"
    assert verdicts[-1] is Verdict.ROSE_BY_ITSELF
    assert len(verdicts) == 3


@pytest.mark.parametrize("push", [2.0, -2.0])
def test_departures_at_another_torque_each_time_are_a_hands(push):
    watched, way = Watched(push), push / abs(push)
    for k in range(8):
        assert watched.move(way * SPEED, 0.3 + 0.2 * (k % 2)) is Verdict.RISES
        watched.step(0.0, 0.2)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_an_arm_that_moves_already_is_led(way):
    assert Watched(2.0, velocity=(0.0, way * SPEED)).move(SPEED, 0.5) is Verdict.QUIET
    assert Watched(2.0, velocity=(0.0, way * 0.5 * MIN_SPEED)).move(SPEED, 0.5) is Verdict.RISES


@pytest.mark.parametrize("push", [2.0, -2.0])
def test_a_joint_that_goes_on_is_led(push):
    watched, way = Watched(push), push / abs(push)
    assert watched.move(way * SPEED, 0.5) is Verdict.RISES
    for _ in range(100):
        watched.step(way * SPEED, 0.4)
    assert not watched.watch.is_on


@pytest.mark.parametrize("push", [2.0, -2.0])
@pytest.mark.parametrize("carried", [0.5, 0.1])
def test_an_arm_that_rests_in_its_spring_again_and_again_sinks(push, carried):
    watched, way = Watched(push), -push / abs(push)
    verdicts = []
    for _ in range(3):
        assert watched.move(way * SPEED, 0.5) is Verdict.SINKS
        for _ in range(250):
            verdicts.append(watched.step(0.0, 0.5, [0.0, carried]))
            if verdicts[-1] is not Verdict.SINKS:
                break
    assert verdicts[-1] is (Verdict.SANK_BY_ITSELF if carried > 0.2 else Verdict.QUIET)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_small_motion_is_none(way):
    watched = Watched(2.0)
    assert [watched.step(way * SPEED, 0.5) for _ in range(int(MIN_DEPARTURE / SPEED / STEP_S))] == [Verdict.QUIET] * 16
    slow = Watched(2.0)
    assert all(slow.step(way * 0.9 * MIN_SPEED, 0.5) is Verdict.QUIET for _ in range(200))
