"""Models and loads that cannot be are refused, by how far their torque is from the URDF's or from the one in force."""

import math

import planar_arm
import pytest

from dynid_ros.control import CarriedLoad, LoadedGravity, ModelChange
from dynid_ros.errors import ControlError
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

EFFORT = 50.0
PRESENT = planar_arm.G * (planar_arm.MOMENTS["joint_2"] + planar_arm.MOMENTS["joint_3"])
"""Largest torque of the planar arm, of joint 2, stretched out, N m."""


def change(largest=0.3, urdf=None):
    return ModelChange(GravityModel(RobotModel.from_urdf(urdf or planar_arm.urdf(EFFORT))), [EFFORT] * 3, largest)


def arm(factor=1.0, **moments):
    model = GravityModel(RobotModel.from_urdf(planar_arm.urdf(EFFORT)))
    wanted = {f"n_x {name}": factor * value for name, value in planar_arm.MOMENTS.items()} | {
        f"n_x {name}": value for name, value in moments.items()
    }
    return LoadedGravity(model, [wanted.get(name, 0.0) for name in model.names])


def loaded(mass, *center):
    return arm().carrying(CarriedLoad(mass, center, "link_3"))


def largest_factor(part):
    """Factor on all moments by which the torque differs by a part of the effort limit."""
    return 1.0 + part * EFFORT / PRESENT


def test_a_model_near_the_urdf_may_be():
    for factor in (1.0, 0.5, 2.0 - largest_factor(0.29), largest_factor(0.29)):
        change().check_arm(arm(factor))


@pytest.mark.parametrize("factor", [largest_factor(0.31), 2.0 - largest_factor(0.31)])
def test_one_further_off_than_the_largest_change_may_not(factor):
    with pytest.raises(ControlError, match=r"'joint_2' differs from the URDF's by up to 15\.\d N m \(N\), 0\.31 of"):
        change().check_arm(arm(factor))
    change(0.4).check_arm(arm(factor))


def test_a_flipped_sign_is_named():
    with pytest.raises(ControlError, match="'joint_2' has the other sign than by the URDF"):
        change().check_arm(arm(-1.0))
    with pytest.raises(ControlError, match="'joint_3' has the other sign than by the URDF"):
        change().check_arm(arm(joint_3=-planar_arm.MOMENTS["joint_3"]))
    with pytest.raises(ControlError, match="other sign"):
        change(5.0).check_arm(arm(-1.0))


@pytest.mark.parametrize("masses", ["masses", "none"])
def test_an_impossible_moment_is_refused_with_or_without_masses_in_the_urdf(masses):
    with pytest.raises(ControlError, match="gravity torque of joint 'joint_2' differs"):
        change(urdf=massless() if masses == "none" else None).check_arm(arm(joint_2=1e5))


def massless(masses=planar_arm.MASS):
    text = planar_arm.urdf(EFFORT)
    for mass in masses:
        text = text.replace(f'<mass value="{mass}"/>', '<mass value="0"/>')
    return text


def test_a_urdf_without_masses_says_nothing_but_its_effort_limits():
    change(urdf=massless()).check_arm(arm())
    change(urdf=massless()).check_arm(arm(-1.0))


def test_joints_beyond_which_the_urdf_has_no_masses_are_held_against_their_effort_limit_alone():
    before, _, after = massless(planar_arm.MASS[2:]).rpartition(f'effort="{EFFORT}"')
    change(urdf=f'{before}effort="5.0"{after}').check_arm(arm())  # of joint 3 0.59 of its limit


@pytest.mark.parametrize(("mass", "lever"), [(4.9, 1.9), (4.9, 1.05)])
def test_a_load_that_no_joint_could_hold_is_refused(mass, lever):
    with pytest.raises(ControlError, match="changes with the load by up to"):
        change().check_load(loaded(mass, lever, 0.0, 0.0))


def test_a_load_that_the_joints_hold_is_taken():
    change().check_load(loaded(4.9, 0.1, 0.0, 0.0))
    change().check_load(arm())


def test_a_step_is_compared_with_what_is_in_force():
    one = change()
    one.check_change(one, arm(), loaded(3.0, 0.1, 0.0, 0.0))  # 14.7 N m of 50
    with pytest.raises(ControlError, match=r"'joint_2' changes by up to .* disable and enable"):
        one.check_change(one, arm(), loaded(3.2, 0.1, 0.0, 0.0))
    one.check_change(one, loaded(3.2, 0.1, 0.0, 0.0), loaded(3.4, 0.1, 0.0, 0.0))


def test_any_change_may_be_allowed_and_none_may_not():
    change(math.inf).check_arm(arm(-1.0))
    change(math.inf).check_load(loaded(4.9, 1.9, 0.0, 0.0))
    for part in (0.0, -0.3, math.nan):
        with pytest.raises(ControlError, match="max_model_change is"):
            change(part)


def test_an_effort_limit_that_the_urdf_lacks_is_that_of_the_node():
    text = planar_arm.urdf(0.0)
    with pytest.raises(ControlError, match=r"0\.31 of its effort limit"):
        change(urdf=text).check_arm(arm(largest_factor(0.31)))


def test_joints_without_limits_are_compared_all_round():
    text = (
        planar_arm.urdf(EFFORT).replace('type="revolute"', 'type="continuous"').replace('lower="-2.5" upper="2.5" ', "")
    )
    with pytest.raises(ControlError, match=r"0\.31 of its effort limit"):
        change(urdf=text).check_arm(arm(largest_factor(0.31)))
