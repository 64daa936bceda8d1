"""Test refusals of implausible models and loads by the URDF, the model in force and the measured effort."""

import math

import planar_arm
import pytest

from dynid_ros.control import CarriedLoad, LoadedGravity, MeasuredEffort, ModelChange
from dynid_ros.control.model_change import acting_scale
from dynid_ros.errors import ControlError
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

EFFORT_LIMIT = 50.0
POSE = [0.3, 0.2, -0.4]
EFFORT_ERROR = [2.5] * 3

NAMES = ("shoulder", "elbow", "wrist")
GRAVITY = [100.0, -40.0, 0.5]
ACTING_TORQUE_ERROR = [10.0, 5.0, 1.0]


def make_change(max_change=0.2, urdf=None):
    return ModelChange(
        GravityModel(RobotModel.from_urdf(urdf or planar_arm.urdf(EFFORT_LIMIT))), [EFFORT_LIMIT] * 3, max_change
    )


def make_gravity(factor=1.0, **moments):
    model = GravityModel(RobotModel.from_urdf(planar_arm.urdf(EFFORT_LIMIT)))
    values = {f"n_x {name}": factor * value for name, value in planar_arm.MOMENTS.items()} | {
        f"n_x {name}": value for name, value in moments.items()
    }
    return LoadedGravity(model, [values.get(name, 0.0) for name in model.names])


def make_loaded_gravity(mass, *center):
    return make_gravity().carrying(CarriedLoad(mass, center, "link_3"))


def measure_effort(factor, *, certain=True):
    return MeasuredEffort(POSE, planar_arm.gravity_torque(POSE, factor), EFFORT_ERROR, certain)


@pytest.mark.parametrize("factor", [0.82, 1.0, 1.18])
def test_model_near_the_urdf_is_accepted(factor):
    make_change().check_arm(make_gravity(factor))


@pytest.mark.parametrize("factor", [0.5, 0.78, 1.22, 1.5])
def test_model_far_from_the_urdf_is_refused(factor):
    with pytest.raises(ControlError, match="'joint_2' differs from the URDF's"):
        make_change().check_arm(make_gravity(factor))
    make_change(0.6).check_arm(make_gravity(factor))


def test_light_joint_is_judged_by_its_effort_limit():
    """A difference below the dry friction does not count."""
    make_change().check_arm(
        make_gravity(joint_3=planar_arm.MOMENTS["joint_3"] + 0.9 * 0.02 * EFFORT_LIMIT / planar_arm.G)
    )
    text = planar_arm.urdf(100.0 * EFFORT_LIMIT)
    make_change(urdf=text).check_arm(make_gravity(1.5))


@pytest.mark.parametrize("factor", [-1.0, -0.1])
def test_other_sign_is_refused_for_any_allowed_change(factor):
    for allowed in (0.2, 5.0):
        with pytest.raises(ControlError, match="other sign"):
            make_change(allowed).check_arm(make_gravity(factor))


def test_holding_effort_confirms_a_model_against_the_urdf():
    assert make_change().check_arm(make_gravity(1.5), measure_effort(1.5))
    with pytest.raises(ControlError, match="differs from the URDF"):
        make_change().check_arm(make_gravity(1.5), None)


def test_effort_of_an_unheld_arm_confirms_nothing():
    unheld = MeasuredEffort(POSE, [1.0, -1.0, 1.0], EFFORT_ERROR, certain=True)
    assert not make_change().check_arm(make_gravity(), unheld)
    with pytest.raises(ControlError, match="differs from the URDF"):
        make_change().check_arm(make_gravity(1.5), unheld)


@pytest.mark.parametrize("factor", [0.5, 1.6])
def test_certain_holding_effort_contradicts_a_model(factor):
    with pytest.raises(ControlError, match="hold it"):
        make_change().check_arm(make_gravity(), measure_effort(factor))
    assert not make_change().check_arm(make_gravity(), measure_effort(factor, certain=False))


def remove_masses(masses=planar_arm.MASS):
    text = planar_arm.urdf(EFFORT_LIMIT)
    for mass in masses:
        text = text.replace(f'<mass value="{mass}"/>', '<mass value="0"/>')
    return text


def test_urdf_without_masses_limits_a_model_by_effort():
    make_change(urdf=remove_masses()).check_arm(make_gravity())
    make_change(urdf=remove_masses()).check_arm(make_gravity(-1.0))
    with pytest.raises(ControlError, match="more than its effort limit"):
        make_change(urdf=remove_masses()).check_arm(make_gravity(joint_2=1e5))


@pytest.mark.parametrize(("mass", "lever"), [(4.9, 1.9), (4.9, 1.05)])
def test_load_beyond_the_effort_limits_is_refused(mass, lever):
    with pytest.raises(ControlError, match="changes with the load"):
        make_change().check_load(make_loaded_gravity(mass, lever, 0.0, 0.0))


def test_load_is_judged_with_the_arm_in_its_pose():
    gravity = make_loaded_gravity(4.9, 0.6, 0.0, 0.0)
    make_change().check_load(gravity)
    make_change().check_load(gravity, [0.0, math.pi / 2, 0.0])
    with pytest.raises(ControlError, match="in this pose"):
        make_change().check_load(gravity, [0.0, 0.0, 0.0])


@pytest.mark.parametrize(("factor", "is_accepted"), [(1.1, True), (1.25, False), (0.9, True), (0.75, False)])
def test_reload_is_compared_with_the_model_in_force(factor, is_accepted):
    change = make_change()
    if is_accepted:
        change.check_change(change, make_gravity(), make_gravity(factor))
        return
    with pytest.raises(ControlError, match="disable, reload and enable"):
        change.check_change(change, make_gravity(), make_gravity(factor))


def test_load_in_force_is_no_change_of_the_model():
    change = make_change()
    change.check_change(change, make_loaded_gravity(4.0, 0.1, 0.0, 0.0), make_gravity(1.1))


def test_change_towards_the_measured_effort_is_accepted():
    change = make_change()
    change.check_change(change, make_gravity(), make_gravity(0.6), measure_effort(0.5))
    with pytest.raises(ControlError):
        change.check_change(change, make_gravity(), make_gravity(1.4), measure_effort(0.5))


def test_allowed_change_may_be_infinite_but_not_zero():
    make_change(math.inf).check_arm(make_gravity(-1.0))
    make_change(math.inf).check_load(make_loaded_gravity(4.9, 1.9, 0.0, 0.0))
    for part in (0.0, -0.3, math.nan):
        with pytest.raises(ControlError, match="max_model_change is"):
            make_change(part)


def test_continuous_joints_are_compared_over_a_turn():
    text = (
        planar_arm.urdf(EFFORT_LIMIT)
        .replace('type="revolute"', 'type="continuous"')
        .replace('lower="-2.5" upper="2.5" ', "")
    )
    with pytest.raises(ControlError, match="differs from the URDF"):
        make_change(urdf=text).check_arm(make_gravity(1.3))


@pytest.mark.parametrize("scale", [1.0, 0.6, 0.2])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("signs", [(1, 1, 1), (-1, 1, -1), (-1, -1, -1), (1, -1, 1)])
def test_acting_scale_is_estimated_despite_offsets(scale, sign, signs):
    gravity = [direction * abs(torque) for direction, torque in zip(signs, GRAVITY, strict=True)]
    effort = [scale * torque + sign * 0.4 * error for torque, error in zip(gravity, ACTING_TORQUE_ERROR, strict=True)]
    assert acting_scale(NAMES, gravity, effort, ACTING_TORQUE_ERROR) == pytest.approx(scale, abs=0.06)


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_acting_scale_is_at_most_one(direction):
    gravity = [direction * torque for torque in GRAVITY]
    assert acting_scale(NAMES, gravity, [1.08 * torque for torque in gravity], ACTING_TORQUE_ERROR) == 1.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_offsets_alone_give_zero_scale(sign):
    effort = [sign * 0.45 * error for error in ACTING_TORQUE_ERROR]
    assert acting_scale(NAMES, GRAVITY, effort, ACTING_TORQUE_ERROR) == 0.0


def test_unloaded_arm_has_zero_scale():
    assert acting_scale(NAMES, [0.0, 0.0, 0.0], [0.5, -0.5, 0.5], ACTING_TORQUE_ERROR) == 0.0


@pytest.mark.parametrize(
    "effort", [[-100.0, 40.0, 0.0], [100.0, 40.0, 0.0], [100.0, -40.0, 8.0], [100.0, -40.0, -8.0], [150.0, -60.0, 0.0]]
)
def test_efforts_unlike_gravity_are_refused(effort):
    with pytest.raises(ControlError, match="not known what the controller holds"):
        acting_scale(NAMES, GRAVITY, effort, ACTING_TORQUE_ERROR)
