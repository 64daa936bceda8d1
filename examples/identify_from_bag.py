"""Links of an arm from a bag of its motion: python examples/identify_from_bag.py arm.urdf run/ results/ [tip_link]."""

import sys
from pathlib import Path

from dynid_ros.checks import check
from dynid_ros.identification import LinkIdentification  # poses without motion: GravityIdentification
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording

urdf, bag, folder, *tip = sys.argv[1:]
robot = RobotModel.from_urdf(urdf, *tip)
recording = Recording.read(bag, joint_names=robot.joint_names)  # effort is N m; see effort_convention where it is not
for finding in check(recording, robot, motion=True):
    print(f"{finding.severity}: {finding}")
links = LinkIdentification(robot).fit(recording)
print(links.summary())
Path(folder).mkdir(parents=True, exist_ok=True)
links.save(Path(folder) / "identified.yaml")
links.write_urdf(Path(folder) / "identified.urdf")
