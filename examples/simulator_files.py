"""The demo arm for simulators of others, from its one URDF.

    python examples/simulator_files.py FOLDER

writes `demo_arm_mujoco.urdf` and `demo_arm.xml` for mujoco_ros2_control, `demo_arm_gz.urdf` for gz_ros2_control.
docs/simulators.md has how they are started. Another arm: its URDF in place of `demo_arm_urdf()`, its pose in place of
`START`.
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from dynid_ros.files.bounded import share_path
from dynid_ros.model import RobotModel
from dynid_ros.simulation import demo_arm_urdf
from dynid_ros.simulation.mjcf import mjcf_text

START = (0.0, 0.5, 1.0, 0.0, 0.8, 0.0)
"""rad."""
CONTROLLERS = share_path("config/controllers/simulators.yaml").resolve()


def described(urdf: str, joints: list[str], plugin: str, **parameters: object) -> ET.Element:
    """URDF with a `<ros2_control>` element: torques in, the states of the joints out."""
    root = ET.fromstring(urdf)
    system = ET.SubElement(root, "ros2_control", name="arm", type="system")
    hardware = ET.SubElement(system, "hardware")
    ET.SubElement(hardware, "plugin").text = plugin
    for name, value in parameters.items():
        ET.SubElement(hardware, "param", name=name).text = str(value)
    for name, start in zip(joints, START, strict=True):
        joint = ET.SubElement(system, "joint", name=name)
        ET.SubElement(joint, "command_interface", name="effort")
        position = ET.SubElement(joint, "state_interface", name="position")
        ET.SubElement(position, "param", name="initial_value").text = str(start)
        for interface in ("velocity", "effort"):
            ET.SubElement(joint, "state_interface", name=interface)
    return root


def for_gazebo(root: ET.Element, base: str) -> ET.Element:
    """Return the URDF fixed to the world, with the plugin that is the controller manager.

    A base without inertia gets one: libsdformat omits a link without mass together with the whole arm on it.
    """
    foot_link = next(link for link in root.iter("link") if link.get("name") == base)
    if foot_link.find("inertial") is None:
        inertial = ET.SubElement(foot_link, "inertial")
        ET.SubElement(inertial, "mass", value="1.0")
        ET.SubElement(inertial, "inertia", ixx="0.01", ixy="0", ixz="0", iyy="0.01", iyz="0", izz="0.01")
    ET.SubElement(root, "link", name="world")
    foot = ET.SubElement(root, "joint", name="world_to_base", type="fixed")
    ET.SubElement(foot, "parent", link="world")
    ET.SubElement(foot, "child", link=base)
    plugin = ET.SubElement(
        ET.SubElement(root, "gazebo"),
        "plugin",
        filename="libgz_ros2_control-system.so",
        name="gz_ros2_control::GazeboSimROS2ControlPlugin",
    )
    ET.SubElement(plugin, "parameters").text = str(CONTROLLERS)
    return root


def write(root: ET.Element, path: Path) -> None:
    """As text."""
    ET.indent(root)
    path.write_text(ET.tostring(root, encoding="unicode") + "\n", encoding="utf-8")


folder = Path(sys.argv[1]).resolve()
folder.mkdir(parents=True, exist_ok=True)
urdf = demo_arm_urdf()
robot = RobotModel.from_urdf(urdf)
joints = list(robot.joint_names)
(folder / "demo_arm.xml").write_text(mjcf_text(urdf, robot), encoding="utf-8")
mujoco = described(
    urdf, joints, "mujoco_ros2_control/MujocoSystemInterface", mujoco_model=folder / "demo_arm.xml", headless="true"
)
write(mujoco, folder / "demo_arm_mujoco.urdf")
write(for_gazebo(described(urdf, joints, "gz_ros2_control/GazeboSimSystem"), robot.base), folder / "demo_arm_gz.urdf")
print(f"in {folder}: demo_arm_mujoco.urdf, demo_arm.xml, demo_arm_gz.urdf; controllers: {CONTROLLERS}")
