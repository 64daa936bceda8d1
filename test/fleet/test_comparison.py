"""Who is unlike the others, and who changes: found where it is so, with intervals counted, and not where it is not."""

import numpy as np
import pytest

from dynid_ros.fleet.fleet_table import Entry, compare, drifts

SPREAD = 0.3


def fleet(rng, arms=60, names=10, spread=SPREAD, runs=1, rate=0.0):
    """Entries of arms whose parameters differ by `spread`, known with errors of 0.05 to 1."""
    entries = []
    for name in range(names):
        for arm in range(arms):
            own = 5.0 + spread * rng.standard_normal()
            for run in range(runs):
                std = 10.0 ** rng.uniform(-1.3, 0.0)
                value = own + 30.0 * run * rate + std * rng.standard_normal()
                entries.append(Entry(("links", "same"), f"arm_{arm}", str(run), 30.0 * run, f"p{name}", value, std))
    return entries


def changed(entries, arm, name, by):
    return [e._replace(value=e.value + by) if (e.arm, e.parameter) == (arm, name) else e for e in entries]


@pytest.mark.parametrize(
    ("spread", "arms", "names"),
    [
        (SPREAD, 20, 10),
        pytest.param(0.0, 20, 10, marks=pytest.mark.slow),
        pytest.param(0.0, 60, 10, marks=pytest.mark.slow),
        pytest.param(SPREAD, 60, 10, marks=pytest.mark.slow),
        pytest.param(SPREAD, 20, 40, marks=pytest.mark.slow),
    ],
)
def test_of_fleets_in_which_all_are_alike_few_report_anything(spread, arms, names):
    draws = (np.random.default_rng(k) for k in range(60))
    reported = sum(any(each.unlike for each in compare(fleet(rng, arms, names, spread))) for rng in draws)
    assert reported <= 4  # fewer than 3 expected


def test_an_arm_that_is_unlike_the_others_is_found_and_one_that_is_badly_known_is_not():
    entries = fleet(np.random.default_rng(1))
    exact = [e._replace(std=0.05) if e.arm == "arm_7" else e for e in entries]
    found = [each for each in compare(changed(exact, "arm_7", "p3", 4.0)) if each.unlike]
    assert [(each.entry.arm, each.entry.parameter) for each in found] == [("arm_7", "p3")]
    assert found[0].spread == pytest.approx(SPREAD, rel=0.4)
    assert found[0].median == pytest.approx(5.0, abs=0.15)
    vague = [e._replace(std=3.0) if e.arm == "arm_7" else e for e in entries]
    assert not any(each.unlike for each in compare(changed(vague, "arm_7", "p3", 4.0)) if each.entry.arm == "arm_7")


def test_arms_are_compared_by_their_last_runs_and_only_with_arms_of_their_kinematics():
    entries = fleet(np.random.default_rng(2), arms=20, names=1, runs=2)
    assert {each.entry.run for each in compare(entries)} == {"1"}
    assert len(compare(entries)) == 20
    others = [e._replace(group=("links", e.arm)) for e in entries]
    assert compare(others) == []


def test_rates_are_within_their_intervals_as_often_as_these_say():
    within, sure, total = 0, 0, 0
    for seed in range(6):
        found = drifts(fleet(np.random.default_rng(seed), runs=3, rate=0.01))
        within += sum(each.interval[0] < 0.01 < each.interval[1] for each in found)
        total += len(found)
        sure += any(each.sure for each in drifts(fleet(np.random.default_rng(seed), runs=3)))
    assert total == 6 * 600
    assert 0.93 < within / total < 0.99
    assert sure <= 2


def test_a_drift_is_found_and_scatter_widens_its_interval():
    entries = fleet(np.random.default_rng(3), arms=5, names=2, runs=5)
    moving = [e._replace(value=e.value + 0.1 * e.time, std=0.05) if e.arm == "arm_2" else e for e in entries]
    scattered = [e._replace(value=e.value + 3.0 * (-1) ** int(e.run)) if e.arm == "arm_2" else e for e in moving]
    (one, two) = (each for each in drifts(moving) if each.entry.arm == "arm_2")
    assert one.sure
    assert two.sure
    wide = [each for each in drifts(scattered) if each.entry.arm == "arm_2"]
    for before, after in zip((one, two), wide, strict=True):
        assert not after.sure
        assert np.diff(after.interval) > 5 * np.diff(before.interval)
