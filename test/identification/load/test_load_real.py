"""A load of 2.805 kg on a UR10e, whose torques are motor currents times a gain."""

from functools import cache

import pytest
from real_recordings import DATA, MISSING, real_recording, real_robot

from dynid_ros.identification import LinkIdentification, LoadIdentification

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=MISSING)

MASS = 2.805
SAME_MOTION = ("20_02_19_14harm50sec",)
OTHER_MOTIONS = ("20_02_10-30sec_12harm", "20_02_12-40sec_12harm")


@cache
def arm(names):
    return LinkIdentification(real_robot("ur10e")).fit(*(real_recording("ur10e", name) for name in names))


@pytest.mark.slow
@pytest.mark.parametrize("names", [SAME_MOTION, OTHER_MOTIONS])
def test_load_is_weighed_and_its_interval_holds_it(names):
    found = LoadIdentification(real_robot("ur10e"), arm(names)).fit(real_recording("ur10e", "20_02_19_14harm50secLoad"))
    low, high = found.confidence_intervals()[0]
    assert abs(found.mass / MASS - 1) < 0.01
    assert low < MASS < high
    assert high - low < 0.08 * MASS  # an interval that holds everything would say nothing


@pytest.mark.slow
@pytest.mark.parametrize("names", [SAME_MOTION, OTHER_MOTIONS])
def test_unloaded_arm_shows_no_load(names):
    found = LoadIdentification(real_robot("ur10e"), arm(names)).fit(real_recording("ur10e", SAME_MOTION[0]))
    low, high = found.confidence_intervals()[0]
    assert low < 0 < high < 0.05
    assert not found.is_loaded
