"""Identify the links of an arm from a bag of its motion.

    python examples/identify_from_bag.py arm.urdf run/ results/ [tip_link]

prints the findings and the estimates, and writes `identified.yaml` and `identified.urdf` to the results folder.
"""

import sys
from pathlib import Path

from dynid_ros.checks import check
from dynid_ros.identification import LinkIdentification  # for static poses: GravityIdentification
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording

urdf, bag, results, *tip = sys.argv[1:]
robot = RobotModel.from_urdf(urdf, *tip)
recording = Recording.read(bag, joint_names=robot.joint_names)  # in N m; for other units see effort_convention
for finding in check(recording, robot, motion=True):
    print(f"{finding.severity}: {finding}")
links = LinkIdentification(robot).fit(recording)
print(links.summary())
folder = Path(results)
folder.mkdir(parents=True, exist_ok=True)
links.save(folder / "identified.yaml")
links.write_urdf(folder / "identified.urdf")
