"""Test progress of a computation: sums of parts, estimated remaining time, and cancellation."""

import threading

import pytest

from dynid_ros import progress
from dynid_ros.progress import Cancelled, Watch, advance, each, watched, watching


@pytest.fixture
def clock(monkeypatch):
    """Return a clock in s that the test sets."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_progress_without_observer():
    advance(0.5)
    assert list(each("ab")) == ["a", "b"]
    assert watched() is None


def test_nested_parts_add_up(clock):
    parts = []
    with watching(Watch()) as watch:
        watch.begin("fitting", 2, 4)
        for half in each([0.5, 1.0]):
            for _ in each(range(2)):
                advance(0.5)
                parts.append(watch.part)
                advance(0.2)  # progress does not decrease
            assert watch.part == pytest.approx(half)
    assert parts == pytest.approx([0.125, 0.375, 0.625, 0.875])
    assert watch.whole == pytest.approx(0.5)


def test_remaining_time_follows_from_the_pace_of_the_step(clock):
    with watching(Watch()) as watch:
        assert str(watch) == "starting"
        watch.begin("fitting", 1, 2)
        clock[0] += 30.0
        assert watch.remaining is None
        assert str(watch) == "fitting (1 of 2)"
        advance(0.25)
        assert watch.remaining == pytest.approx(90.0)
        assert str(watch) == "fitting (1 of 2), 25 %, some 90 s left"
        clock[0] += 30.0
        assert str(watch) == "fitting (1 of 2), 25 %, some 3 min left"
        watch.begin("writing", 2, 2)
        assert (watch.part, watch.seconds, watch.remaining) == (0.0, 0.0, None)


@pytest.mark.parametrize(
    "step", [lambda: advance(0.1), lambda: list(each("ab")), lambda: watched().begin("next", 2, 2)]
)
def test_cancellation_by_another_thread_ends_the_next_step(step):
    with watching(Watch()) as watch:
        watch.begin("fitting", 1, 2)
        thread = threading.Thread(target=watch.cancel)
        thread.start()
        thread.join()
        with pytest.raises(Cancelled, match="cancelled while fitting"):
            step()
    advance(0.1)  # no effect on the next computation
