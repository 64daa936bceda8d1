"""Cell by cell, as in a notebook (VS Code, Spyder, jupytext): two bags of an arm, from doubts to a model in use.

python examples/walkthrough.py arm.urdf run1/ run2/
"""

# %% The arm and what it did: two different motions, one to fit and one to judge by
import sys

import matplotlib.pyplot as plt
import numpy as np

from dynid_ros.checks import check
from dynid_ros.identification import LinkIdentification
from dynid_ros.jobs.judging import judge
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording

urdf, fitted, unseen = sys.argv[1:4]
robot = RobotModel.from_urdf(urdf)
first, second = [Recording.read(path, joint_names=robot.joint_names) for path in (fitted, unseen)]
print(f"{robot.n_joints} joints, {first.time[-1] - first.time[0]:.0f} s and {second.time[-1] - second.time[0]:.0f} s")

# %% Is anything wrong with the data? Is the motion informative enough?
for finding in check([first, second], robot, motion=True):
    print(f"{finding.severity}: {finding}")
print(judge(robot, [first]).summary())

# %% What the torques say: sums over links, each with its interval; the URDF's value next to it
links = LinkIdentification(robot).fit(first)
print(links.summary())

# %% How well does it predict a motion that it has not seen?
print(links.validate(second).table())

# %% The same as a picture, nothing filtered
shown = links.model.predict_recording(second)
figure, axes = plt.subplots(robot.n_joints, sharex=True, squeeze=False, figsize=(8, 2 * robot.n_joints))
for axis, joint, measured, predicted in zip(axes[:, 0], robot.joint_names, second.torque.T, shown.T, strict=True):
    axis.plot(second.time, measured, color="0.7", label="measured")
    axis.plot(second.time, predicted, label="predicted")
    axis.set_ylabel(f"{joint}, N m")
axes[0, 0].legend()
plt.show()

# %% In use: gravity torque of one pose, and all of the torque that an acceleration takes
pose, rest = np.zeros((1, robot.n_joints)), np.zeros((1, robot.n_joints))
print("gravity torque, N m:", robot.gravity_torque(pose, links.parameters).round(2))
print("to accelerate all joints by 1 rad/s^2, N m:", links.predict(pose, rest, rest + 1.0).round(2))
