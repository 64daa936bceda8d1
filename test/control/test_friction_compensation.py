import planar_arm
import pytest

from dynid_ros.control import compensated_friction
from dynid_ros.errors import ControlError, IdentifiedFileError

FRICTION = {
    "joint_1": {"coulomb": 4.0, "viscous": 2.0, "std": {"coulomb": 0.5, "viscous": 0.1}},
    "joint_2": {"coulomb": 3.0, "viscous": None, "std": {"coulomb": None}},
    "joint_3": {
        "coulomb": 2.0,
        "coulomb_positive": 2.5,
        "coulomb_negative": 1.5,
        "viscous": 0.1,
        "std": {"coulomb_positive": 0.1, "coulomb_negative": 0.2, "viscous": 0.2},
    },
}


@pytest.fixture
def model_file(tmp_path):
    return planar_arm.write(tmp_path / "identified.yaml", planar_arm.document() | {"friction": FRICTION})


def test_it_is_part_of_what_a_joint_has_at_least(model_file):
    """Two standard errors less than the estimate, not below zero, and the smaller one of two directions."""
    coulomb, viscous = compensated_friction(model_file, planar_arm.JOINTS, [0.5, 0.8, 0.1])
    assert coulomb == pytest.approx((0.5 * 3.0, 0.8 * 3.0, 0.1 * 1.1))
    assert viscous == pytest.approx((0.5 * 1.8, 0.0, 0.0))


def test_nothing_is_asked_of_the_file_where_nothing_is_compensated(tmp_path):
    model_file = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
    assert compensated_friction(model_file, planar_arm.JOINTS, [0.0]) == ((0.0,) * 3, (0.0,) * 3)


@pytest.mark.parametrize(
    ("friction", "scale", "error", "message"),
    [
        (FRICTION, [0.9], ControlError, "friction_scale of joint 'joint_1' is 0.9; expected at most 0.8"),
        (FRICTION, [-0.1], ControlError, "friction_scale of joint 'joint_1' is -0.1"),
        (None, [0.5], IdentifiedFileError, "has no section friction; set friction_scale to 0"),
        ({"joint_1": {}}, [0.5], IdentifiedFileError, "friction of joint 'joint_1' was not identified"),
        ({"joint_1": 3}, [0.5], IdentifiedFileError, "friction of joint 'joint_1' was not identified"),
    ],
)
def test_what_cannot_be_compensated_is_refused(tmp_path, friction, scale, error, message):
    model_file = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document() | {"friction": friction})
    with pytest.raises(error) as refused:
        compensated_friction(model_file, planar_arm.JOINTS, scale)
    assert message in str(refused.value)
