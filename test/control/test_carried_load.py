"""What is believed of a load, and where it may be fixed."""

import math

import numpy as np
import planar_arm
import pytest

from dynid_ros.control import CarriedLoad
from dynid_ros.control.gravity_feedforward import LoadFrames
from dynid_ros.errors import ControlError
from dynid_ros.model import RobotModel

HERE = (0.1, 0.0, 0.02)
FIXED = """<link name="flange"/><joint name="flange_joint" type="fixed"><parent link="link_3"/><child link="flange"/>
    <origin xyz="0.3 0 0" rpy="0 0 1.5707963267948966"/></joint><link name="cup"/><joint name="cup_joint" type="fixed">
    <parent link="flange"/><child link="cup"/><origin xyz="0.05 0 0"/></joint></robot>"""


@pytest.fixture
def frames():
    return LoadFrames(RobotModel.from_urdf(planar_arm.urdf().replace("</robot>", FIXED), tip="flange"))


@pytest.mark.parametrize("mass", [-0.1, math.nan, math.inf])
def test_a_mass_that_is_none_is_refused(mass):
    with pytest.raises(ControlError, match=rf"mass is {mass} kg; expected a finite number of at least 0"):
        CarriedLoad(mass, HERE, "link_3")


@pytest.mark.parametrize("center", [(50.0, 0.0, 0.0), (math.nan, 0.0, 0.0), (0.0, math.inf, 0.0)])
def test_a_centre_out_of_reach_is_refused(center):
    """50 is one in millimetres."""
    with pytest.raises(ControlError, match=r"centre of mass is \[.*\] m from link 'link_3'"):
        CarriedLoad(1.0, center, "link_3")


def test_no_load_needs_no_centre(frames):
    load = CarriedLoad(0.0, (math.nan, 0.0, 0.0), "link_3")
    assert frames.parameters(load).tolist() == [0.0] * 30
    assert str(load) == "none"


def test_it_belongs_to_the_last_link_wherever_it_is_fixed(frames):
    """The flange is turned by 90 degrees about z and 0.3 m along x; the cup 0.05 m along the flange's x."""
    for frame, center, in_link in (
        ("link_3", HERE, HERE),
        ("flange", HERE, (0.3, 0.1, 0.02)),
        ("cup", HERE, (0.3, 0.15, 0.02)),
    ):
        parameters = frames.parameters(CarriedLoad(2.0, center, frame)).reshape(3, 10)
        assert not parameters[:2].any()
        assert parameters[2, :4] == pytest.approx([2.0, *(2.0 * np.array(in_link))])


@pytest.mark.parametrize("frame", ["link_2", "base_link", "hand", ""])
def test_another_frame_is_refused_with_those_that_may_be(frames, frame):
    with pytest.raises(
        ControlError, match=f"'{frame}' is not fixed to the last link; expected link_3 or flange or cup"
    ):
        frames.parameters(CarriedLoad(1.0, HERE, frame))


def test_a_section_as_the_load_identification_writes_it():
    section = {"frame": "tool", "loaded": True, "mass": 2, "center": [0, 0.01, 0.1], "inertia": [None] * 6}
    assert CarriedLoad.of_section(section) == CarriedLoad(2.0, (0.0, 0.01, 0.1), "tool")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": None}, "mass is None kg"),
        ({"mass": "2"}, "mass is '2' kg"),
        ({"mass": True}, "mass is True kg"),
        ({"frame": None}, "in frame None"),
        ({"center": [None, 0.0, 0.0]}, r"center is \[None, 0.0, 0.0\]; expected three numbers"),
        ({"center": [0.0, 0.0]}, "center is"),
        ({"center": 0.1}, "center is 0.1"),
        ({"mass": -1.0}, "mass is -1.0 kg"),
    ],
)
def test_a_section_that_does_not_say_it_is_refused(change, message):
    with pytest.raises(ControlError, match=message):
        CarriedLoad.of_section({"frame": "tool", "mass": 2.0, "center": [0.0, 0.0, 0.1]} | change)


def test_a_section_that_is_no_mapping_is_refused():
    with pytest.raises(ControlError, match="mass is None kg in frame None"):
        CarriedLoad.of_section([1.0])


def test_in_words():
    assert str(CarriedLoad(1.23456, (0.1, -0.02, 0.0), "tool")) == "1.235 kg at (100, -20, 0) mm from tool"
