"""Positions that are not those of links."""

import numpy as np
import pytest

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.flexible_identification import check_links
from dynid_ros.recording import Recording

TIME = 0.01 * np.arange(300)
MOTOR = np.stack([0.5 * np.sin(2 * TIME), 0.3 * np.cos(3 * TIME)], axis=1)
MOTORS = Recording(("waist", "elbow"), TIME, MOTOR, np.full_like(MOTOR, np.nan), MOTOR, source="bench.mcap")
LINK = MOTOR + 0.01 * np.sin(7 * TIME)[:, None]


def elbow(values):
    return np.column_stack([LINK[:, 0], values])


def test_links_pass():
    check_links(MOTORS, TIME, LINK)
    check_links(MOTORS, TIME, LINK + np.array([0.3, -2.0]))
    check_links(MOTORS, TIME[::3] + 0.02, LINK[::3])
    seen = LINK.copy()
    seen[50:250] = np.nan
    check_links(MOTORS, TIME, seen)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        (elbow(MOTOR[:, 1]), "those of its motor"),
        (elbow(MOTOR[:, 1] + 0.2), "those of its motor"),
        (elbow(-LINK[:, 1]), "against its motor.*mirrored"),
        (elbow(np.degrees(LINK[:, 1])), "degrees"),
        (elbow(1000 * LINK[:, 1]), "millimetres"),
        (elbow(4 * LINK[:, 1]), "4.* times as far.*expected rad"),
        (elbow(np.full(300, np.nan)), "no positions of its link"),
    ],
)
def test_joint_and_file_are_named(link, message):
    with pytest.raises(IdentificationError, match=f"^bench\\.mcap: joint 'elbow'.*{message}"):
        check_links(MOTORS, TIME, link)


def test_no_overlap_tells_both_times():
    with pytest.raises(IdentificationError, match=r"bench\.mcap: .*from 50\.000 to 52\.990 s.*0\.000 to 2\.990 s"):
        check_links(MOTORS, TIME + 50.0, LINK)


def test_a_motor_at_rest_cannot_tell():
    still = MOTOR.copy()
    still[:, 1] = 0.3
    resting = Recording(("waist", "elbow"), TIME, still, np.full_like(still, np.nan), still)
    check_links(resting, TIME, elbow(-0.3 + 1e-3 * np.sin(7 * TIME)))
