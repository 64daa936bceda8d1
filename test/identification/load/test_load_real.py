"""Load of 2.805 kg on a UR10e whose torques are motor currents times gains."""

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
def test_identifies_the_load_and_covers_it(names):
    loaded = real_recording("ur10e", "20_02_19_14harm50secLoad")
    result = LoadIdentification(real_robot("ur10e"), arm(names)).fit(loaded)
    low, high = result.confidence_intervals()[0]
    assert abs(result.mass / MASS - 1) < 0.01
    assert low < MASS < high
    assert high - low < 0.08 * MASS


@pytest.mark.slow
@pytest.mark.parametrize("names", [SAME_MOTION, OTHER_MOTIONS])
def test_unloaded_arm_has_no_load(names):
    result = LoadIdentification(real_robot("ur10e"), arm(names)).fit(real_recording("ur10e", SAME_MOTION[0]))
    low, high = result.confidence_intervals()[0]
    assert low < 0 < high < 0.05
    assert not result.is_loaded
