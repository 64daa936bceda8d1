"""Models and loads that cannot be right are refused: by the URDF, by the model in force, by measured effort."""

import math

import planar_arm
import pytest

from dynid_ros.control import CarriedLoad, LoadedGravity, MeasuredEffort, ModelChange
from dynid_ros.control.model_change import acting_scale
from dynid_ros.errors import ControlError
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

EFFORT = 50.0
POSE = [0.3, 0.2, -0.4]
ERROR = [2.5] * 3

NAMES = ("shoulder", "elbow", "wrist")
GRAVITY = [100.0, -40.0, 0.5]
ACTING_TORQUE_ERROR = [10.0, 5.0, 1.0]


def change(max_change=0.2, urdf=None):
    return ModelChange(GravityModel(RobotModel.from_urdf(urdf or planar_arm.urdf(EFFORT))), [EFFORT] * 3, max_change)


def arm(factor=1.0, **moments):
    model = GravityModel(RobotModel.from_urdf(planar_arm.urdf(EFFORT)))
    wanted = {f"n_x {name}": factor * value for name, value in planar_arm.MOMENTS.items()} | {
        f"n_x {name}": value for name, value in moments.items()
    }
    return LoadedGravity(model, [wanted.get(name, 0.0) for name in model.names])


def loaded(mass, *center):
    return arm().carrying(CarriedLoad(mass, center, "link_3"))


def measured(factor, *, certain=True):
    return MeasuredEffort(POSE, planar_arm.gravity_torque(POSE, factor), ERROR, certain)


@pytest.mark.parametrize("factor", [0.82, 1.0, 1.18])
def test_a_model_near_the_urdf_is_taken(factor):
    change().check_arm(arm(factor))


@pytest.mark.parametrize("factor", [0.5, 0.78, 1.22, 1.5])
def test_a_model_far_off_the_urdf_is_refused(factor):
    with pytest.raises(ControlError, match="'joint_2' differs from the URDF's"):
        change().check_arm(arm(factor))
    change(0.6).check_arm(arm(factor))


def test_a_light_joint_is_judged_by_its_effort_limit():
    """What dry friction hides is no difference."""
    change().check_arm(arm(joint_3=planar_arm.MOMENTS["joint_3"] + 0.9 * 0.02 * EFFORT / planar_arm.G))
    text = planar_arm.urdf(100.0 * EFFORT)
    change(urdf=text).check_arm(arm(1.5))


@pytest.mark.parametrize("factor", [-1.0, -0.1])
def test_a_flipped_sign_is_refused_whatever_the_allowed_change(factor):
    for allowed in (0.2, 5.0):
        with pytest.raises(ControlError, match="other sign"):
            change(allowed).check_arm(arm(factor))


def test_effort_that_holds_the_arm_confirms_a_model_against_the_urdf():
    assert change().check_arm(arm(1.5), measured(1.5))
    with pytest.raises(ControlError, match="differs from the URDF"):
        change().check_arm(arm(1.5), None)


def test_effort_of_an_arm_that_nothing_holds_confirms_nothing():
    nothing = MeasuredEffort(POSE, [1.0, -1.0, 1.0], ERROR, certain=True)
    assert not change().check_arm(arm(), nothing)
    with pytest.raises(ControlError, match="differs from the URDF"):
        change().check_arm(arm(1.5), nothing)


@pytest.mark.parametrize("factor", [0.5, 1.6])
def test_effort_that_surely_holds_the_arm_contradicts_a_model(factor):
    with pytest.raises(ControlError, match="hold it"):
        change().check_arm(arm(), measured(factor))
    assert not change().check_arm(arm(), measured(factor, certain=False))


def massless(masses=planar_arm.MASS):
    text = planar_arm.urdf(EFFORT)
    for mass in masses:
        text = text.replace(f'<mass value="{mass}"/>', '<mass value="0"/>')
    return text


def test_a_urdf_without_masses_limits_a_model_by_its_effort_alone():
    change(urdf=massless()).check_arm(arm())
    change(urdf=massless()).check_arm(arm(-1.0))
    with pytest.raises(ControlError, match="more than its effort limit"):
        change(urdf=massless()).check_arm(arm(joint_2=1e5))


@pytest.mark.parametrize(("mass", "lever"), [(4.9, 1.9), (4.9, 1.05)])
def test_a_load_that_no_joint_could_hold_is_refused(mass, lever):
    with pytest.raises(ControlError, match="changes with the load"):
        change().check_load(loaded(mass, lever, 0.0, 0.0))


def test_a_load_is_judged_together_with_the_arm_in_its_pose():
    gravity = loaded(4.9, 0.6, 0.0, 0.0)
    change().check_load(gravity)
    change().check_load(gravity, [0.0, math.pi / 2, 0.0])
    with pytest.raises(ControlError, match="in this pose"):
        change().check_load(gravity, [0.0, 0.0, 0.0])


@pytest.mark.parametrize(("factor", "taken"), [(1.1, True), (1.25, False), (0.9, True), (0.75, False)])
def test_a_reload_is_compared_with_the_model_in_force(factor, taken):
    one = change()
    if taken:
        one.check_change(one, arm(), arm(factor))
        return
    with pytest.raises(ControlError, match="disable, reload and enable"):
        one.check_change(one, arm(), arm(factor))


def test_the_load_in_force_does_not_count_as_a_change_of_the_model():
    one = change()
    one.check_change(one, loaded(4.0, 0.1, 0.0, 0.0), arm(1.1))


def test_a_change_towards_the_measured_effort_is_always_taken():
    one = change()
    one.check_change(one, arm(), arm(0.6), measured(0.5))
    with pytest.raises(ControlError):
        one.check_change(one, arm(), arm(1.4), measured(0.5))


def test_any_change_may_be_allowed_and_none_may_not():
    change(math.inf).check_arm(arm(-1.0))
    change(math.inf).check_load(loaded(4.9, 1.9, 0.0, 0.0))
    for part in (0.0, -0.3, math.nan):
        with pytest.raises(ControlError, match="max_model_change is"):
            change(part)


def test_joints_without_limits_are_compared_all_round():
    text = (
        planar_arm.urdf(EFFORT).replace('type="revolute"', 'type="continuous"').replace('lower="-2.5" upper="2.5" ', "")
    )
    with pytest.raises(ControlError, match="differs from the URDF"):
        change(urdf=text).check_arm(arm(1.3))


@pytest.mark.parametrize("scale", [1.0, 0.6, 0.2])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("ways", [(1, 1, 1), (-1, 1, -1), (-1, -1, -1), (1, -1, 1)])
def test_the_scale_of_the_process_before_is_found_through_offsets(scale, sign, ways):
    gravity = [way * abs(torque) for way, torque in zip(ways, GRAVITY, strict=True)]
    effort = [scale * torque + sign * 0.4 * error for torque, error in zip(gravity, ACTING_TORQUE_ERROR, strict=True)]
    assert acting_scale(NAMES, gravity, effort, ACTING_TORQUE_ERROR) == pytest.approx(scale, abs=0.06)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_more_than_all_of_gravity_is_all_of_it(way):
    gravity = [way * torque for torque in GRAVITY]
    assert acting_scale(NAMES, gravity, [1.08 * torque for torque in gravity], ACTING_TORQUE_ERROR) == 1.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_offsets_alone_are_nothing(sign):
    effort = [sign * 0.45 * error for error in ACTING_TORQUE_ERROR]
    assert acting_scale(NAMES, GRAVITY, effort, ACTING_TORQUE_ERROR) == 0.0


def test_an_arm_that_gravity_does_not_load_begins_at_zero():
    assert acting_scale(NAMES, [0.0, 0.0, 0.0], [0.5, -0.5, 0.5], ACTING_TORQUE_ERROR) == 0.0


@pytest.mark.parametrize(
    "effort",
    [[-100.0, 40.0, 0.0], [100.0, 40.0, 0.0], [100.0, -40.0, 8.0], [100.0, -40.0, -8.0], [150.0, -60.0, 0.0]],
)
def test_efforts_that_are_no_part_of_gravity_are_refused(effort):
    with pytest.raises(ControlError, match="not known what the controller holds"):
        acting_scale(NAMES, GRAVITY, effort, ACTING_TORQUE_ERROR)
