import time

import planar_arm
import pytest

pytest.importorskip("rclpy")

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.robot_description import described, robot_name


def test_the_name_is_that_of_the_robot():
    assert robot_name(planar_arm.urdf()) == "planar"
    assert robot_name('<?xml version="1.0"?><robot xmlns:xacro="x"\n name = \'a "b"\' version="1">') == 'a "b"'
    assert robot_name("<robot><link name='l'/></robot>") == ""


@pytest.mark.parametrize("text", ["<robot name= " * 200_000, "<robot a" * 200_000, "<robot " + " name" * 200_000])
def test_a_name_that_is_not_there_is_not_looked_for_for_long(text):
    start = time.process_time()
    assert robot_name(text) == ""
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("text", ["/etc/passwd", "arm.urdf", "", " \n"])
def test_what_comes_on_a_topic_is_never_a_path(text):
    with pytest.raises(DynidError, match=r"topic '/robot_description' says .*, which is no URDF"):
        described(text, "/robot_description")
    assert described(planar_arm.urdf(), "/robot_description") == planar_arm.urdf()
