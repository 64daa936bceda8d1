"""Commands and outputs in numbers, without a message."""

import math

import pytest

from dynid_ros.nodes.compensation.output_watch import (
    MAX_COMMAND_DELAY_S,
    MAX_DEVIATION_FRACTION,
    MIN_DEVIATION_S,
    OutputWatch,
)

NAMES, LIMITS = ("shoulder", "elbow"), (100.0, 20.0)
PERIOD = 0.004


def first_problem(seconds, sent, put_out, sent_every=1):
    """Time, s, at which they are said to part, and the words; None: never."""
    watch = OutputWatch(NAMES, LIMITS)
    for number in range(round(seconds / PERIOD)):
        time = number * PERIOD
        if number % sent_every == 0:
            watch.sent(time, sent(time))
        if problem := watch.seen(time, put_out(time)):
            return time, problem
    return None


def ramp(time):
    return [200.0 * time, -40.0 * time]


@pytest.mark.parametrize("delay", [0.0, 0.004, 0.05, MAX_COMMAND_DELAY_S])
def test_a_delay_is_no_difference(delay):
    assert first_problem(1.0, ramp, lambda time: ramp(max(time - delay, 0.0))) is None


def test_nor_are_few_commands():
    assert first_problem(1.0, ramp, lambda time: ramp(time // 0.1 * 0.1), sent_every=25) is None


@pytest.mark.parametrize(
    ("part", "found"), [(0.9 * MAX_DEVIATION_FRACTION, False), (1.1 * MAX_DEVIATION_FRACTION, True)]
)
@pytest.mark.parametrize("joint", [0, 1])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_difference_beyond_the_part_of_the_limit_is_found(part, found, joint, sign):
    def put_out(_time):
        output = [-50.0, 5.0]
        output[joint] += sign * part * LIMITS[joint]
        return output

    problem = first_problem(1.0, lambda _: [-50.0, 5.0], put_out)
    assert (problem is not None) == found
    if problem:
        assert problem[0] == pytest.approx(MIN_DEVIATION_S, abs=2 * PERIOD)
        assert f"joint '{NAMES[joint]}' gets" in problem[1]


def test_an_effort_that_is_dropped_is_found_in_time():
    time, words = first_problem(2.0, lambda _: [-50.0, 5.0], lambda time: [-50.0, 5.0] if time < 1.0 else [0.0, 0.0])
    assert time == pytest.approx(1.0 + MIN_DEVIATION_S, abs=2 * PERIOD)
    assert words == "joint 'shoulder' gets 0 N m (N), not the -50 that were sent"


def test_one_that_comes_back_within_the_grace_is_none():
    def put_out(time):
        return [0.0, 0.0] if (time % 0.2) < 0.9 * MIN_DEVIATION_S else [-50.0, 5.0]

    assert first_problem(2.0, lambda _: [-50.0, 5.0], put_out) is None


@pytest.mark.parametrize("output", [[math.nan, 5.0], [-50.0], []])
def test_what_is_no_number_or_missing_is_no_agreement(output):
    assert first_problem(1.0, lambda _: [-50.0, 5.0], lambda _: output) is not None


def test_without_commands_nothing_is_compared():
    watch = OutputWatch(NAMES, LIMITS)
    assert not any(watch.seen(0.1 * n, [50.0, 5.0]) for n in range(10))
    watch.sent(1.0, [0.0, 0.0])
    watch.clear()
    assert not any(watch.seen(1.0 + 0.1 * n, [50.0, 5.0]) for n in range(10))


def test_two_samples_are_not_enough():
    watch = OutputWatch(NAMES, LIMITS)
    watch.sent(0.0, [0.0, 0.0])
    assert not watch.seen(0.2, [50.0, 5.0])
    assert not watch.seen(0.5, [50.0, 5.0])
    assert watch.seen(0.6, [50.0, 5.0])
