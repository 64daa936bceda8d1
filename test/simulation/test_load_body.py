"""A load's numbers on their way into MuJoCo, and what no load can have."""

import carried_loads
import mujoco
import numpy as np
import pytest

from dynid_ros.errors import DynidError
from dynid_ros.simulation.mujoco_model import LINK, checked_load, compile_arm, put_load


@pytest.fixture
def model(demo_robot):
    return compile_arm(demo_robot, 0.001)


def inertia_in_tip(model):
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body(LINK).iquat)
    axes = axes.reshape(3, 3)
    return axes @ np.diag(model.body(LINK).inertia) @ axes.T


def test_mass_centre_and_principal_axes(model):
    put_load(model, carried_loads.parameters())
    body = model.body(LINK)
    assert body.mass == pytest.approx([3.2])
    assert body.ipos == pytest.approx([0.03, -0.05, 0.12])
    assert np.sort(body.inertia) == pytest.approx(np.linalg.eigvalsh(carried_loads.INERTIA), abs=1e-12)
    assert inertia_in_tip(model) == pytest.approx(carried_loads.INERTIA, abs=1e-12)


def test_principal_axes_are_a_right_handed_frame(model):
    for turn in np.linalg.qr(np.random.default_rng(0).normal(size=(20, 3, 3)))[0]:
        inertia = turn @ np.diag([0.02, 0.03, 0.04]) @ turn.T
        put_load(model, carried_loads.parameters(inertia=inertia))
        assert inertia_in_tip(model) == pytest.approx(inertia, abs=1e-12)


def test_without_load_the_body_has_nothing(model):
    put_load(model, carried_loads.parameters())
    put_load(model, None)
    assert model.body(LINK).mass.tolist() == [0.0]
    assert model.body(LINK).inertia.tolist() == [0.0] * 3


def test_a_point_a_rod_and_a_plate_are_loads():
    for inertia in (np.zeros(3), [0.0, 0.1, 0.1], [0.1, 0.2, 0.3]):
        load = carried_loads.parameters(inertia=np.diag(inertia))
        assert np.array_equal(checked_load(load), load)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (np.zeros(10), "mass is 0 kg; expected more than 0"),
        (-carried_loads.parameters(), "mass is -3.2 kg"),
        (np.r_[1.0, 0.1, np.zeros(8)], "no body of 1 kg .* about the frame, not the centre of mass"),
        (carried_loads.parameters(inertia=np.diag([0.1, 0.1, 0.3])), "second moment about its centre of mass is -0.05"),
        (np.r_[5e-324, 1.0, np.zeros(8)], "mass is 4.94066e-324 kg, too little for its moments"),
        (np.r_[np.nan, np.zeros(9)], "entry 0 is not finite"),
        (np.ones(9), r"shape \(9,\); expected \(10,\)"),
    ],
)
def test_what_no_body_has_is_refused(load, message):
    with pytest.raises(DynidError, match=message):
        checked_load(load)
