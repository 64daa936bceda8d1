"""Progress of a computation: its parts add up, the time that is left follows, and cancelling ends it."""

import threading

import pytest

from dynid_ros import progress
from dynid_ros.progress import Cancelled, Watch, advance, each, watched, watching


@pytest.fixture
def clock(monkeypatch):
    """Seconds, set by the test."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_nobody_watches():
    advance(0.5)
    assert list(each("ab")) == ["a", "b"]
    assert watched() is None


def test_parts_of_parts_add_up(clock):
    seen = []
    with watching(Watch()) as watch:
        watch.begin("fitting", 2, 4)
        for half in each([0.5, 1.0]):
            for _ in each(range(2)):
                advance(0.5)
                seen.append(watch.part)
                advance(0.2)  # what was done stays done
            assert watch.part == pytest.approx(half)
    assert seen == pytest.approx([0.125, 0.375, 0.625, 0.875])
    assert watch.whole == pytest.approx(0.5)


def test_time_that_is_left_is_that_of_the_step_at_its_pace_so_far(clock):
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
def test_cancelled_from_another_thread_it_ends_at_the_next_step(step):
    with watching(Watch()) as watch:
        watch.begin("fitting", 1, 2)
        thread = threading.Thread(target=watch.cancel)
        thread.start()
        thread.join()
        with pytest.raises(Cancelled, match="cancelled while fitting"):
            step()
    advance(0.1)  # the next computation is not concerned
