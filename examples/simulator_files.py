"""Write the files with which MuJoCo and Gazebo simulate the demo arm under ros2_control.

    python examples/simulator_files.py FOLDER

writes `demo_arm_mujoco.urdf` and `demo_arm.xml` for mujoco_ros2_control, and `demo_arm_gz.urdf` for gz_ros2_control.
docs/simulators.md describes how to start the simulators. For another arm, replace `demo_arm_urdf()` by its URDF and
`START_POSE_RAD` by its start pose.
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from dynid_ros.files.bounded import share_path
from dynid_ros.model import RobotModel
from dynid_ros.simulation import demo_arm_urdf
from dynid_ros.simulation.mjcf import mjcf_text

START_POSE_RAD = (0.0, 0.5, 1.0, 0.0, 0.8, 0.0)
CONTROLLERS = share_path("config/controllers/simulators.yaml").resolve()


def add_ros2_control(urdf: str, joints: list[str], plugin: str, **parameters: object) -> ET.Element:
    """Return the URDF with a `<ros2_control>` element that takes torques and returns the states of the joints."""
    root = ET.fromstring(urdf)
    system = ET.SubElement(root, "ros2_control", name="arm", type="system")
    hardware = ET.SubElement(system, "hardware")
    ET.SubElement(hardware, "plugin").text = plugin
    for name, value in parameters.items():
        ET.SubElement(hardware, "param", name=name).text = str(value)
    for name, start in zip(joints, START_POSE_RAD, strict=True):
        joint = ET.SubElement(system, "joint", name=name)
        ET.SubElement(joint, "command_interface", name="effort")
        position = ET.SubElement(joint, "state_interface", name="position")
        ET.SubElement(position, "param", name="initial_value").text = str(start)
        for interface in ("velocity", "effort"):
            ET.SubElement(joint, "state_interface", name=interface)
    return root


def fix_to_gazebo_world(root: ET.Element, base: str) -> ET.Element:
    """Return the URDF fixed to the world, with the Gazebo plugin that contains the controller manager.

    A base without inertia is given one: libsdformat omits a link without mass together with the arm attached to it.
    """
    base_link = next(link for link in root.iter("link") if link.get("name") == base)
    if base_link.find("inertial") is None:
        inertial = ET.SubElement(base_link, "inertial")
        ET.SubElement(inertial, "mass", value="1.0")
        ET.SubElement(inertial, "inertia", ixx="0.01", ixy="0", ixz="0", iyy="0.01", iyz="0", izz="0.01")
    ET.SubElement(root, "link", name="world")
    world_joint = ET.SubElement(root, "joint", name="world_to_base", type="fixed")
    ET.SubElement(world_joint, "parent", link="world")
    ET.SubElement(world_joint, "child", link=base)
    gazebo = ET.SubElement(root, "gazebo")
    plugin = ET.SubElement(
        gazebo, "plugin", filename="libgz_ros2_control-system.so", name="gz_ros2_control::GazeboSimROS2ControlPlugin"
    )
    ET.SubElement(plugin, "parameters").text = str(CONTROLLERS)
    return root


def write_indented(root: ET.Element, path: Path) -> None:
    """Write an XML document with indentation."""
    ET.indent(root)
    path.write_text(ET.tostring(root, encoding="unicode") + "\n", encoding="utf-8")


folder = Path(sys.argv[1]).resolve()
folder.mkdir(parents=True, exist_ok=True)
urdf = demo_arm_urdf()
robot = RobotModel.from_urdf(urdf)
joints = list(robot.joint_names)
(folder / "demo_arm.xml").write_text(mjcf_text(urdf, robot), encoding="utf-8")
mujoco_urdf = add_ros2_control(
    urdf, joints, "mujoco_ros2_control/MujocoSystemInterface", mujoco_model=folder / "demo_arm.xml", headless="true"
)
write_indented(mujoco_urdf, folder / "demo_arm_mujoco.urdf")
gazebo_urdf = add_ros2_control(urdf, joints, "gz_ros2_control/GazeboSimSystem")
write_indented(fix_to_gazebo_world(gazebo_urdf, robot.base), folder / "demo_arm_gz.urdf")
print(f"Wrote demo_arm_mujoco.urdf, demo_arm.xml and demo_arm_gz.urdf to {folder}; controllers: {CONTROLLERS}")
