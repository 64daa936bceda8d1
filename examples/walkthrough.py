"""Check, identify, validate and use a model of an arm, cell by cell as in a notebook (VS Code, Spyder, jupytext).

    python examples/walkthrough.py arm.urdf run1/ run2/

The first bag is for the fit, the second for validation.
"""

# %% Read the arm and two different motions: one for the fit, one for validation
import sys

import matplotlib.pyplot as plt
import numpy as np

from dynid_ros.checks import check
from dynid_ros.identification import LinkIdentification
from dynid_ros.jobs.judging import judge
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording

urdf, first_bag, second_bag = sys.argv[1:4]
robot = RobotModel.from_urdf(urdf)
first = Recording.read(first_bag, joint_names=robot.joint_names)
second = Recording.read(second_bag, joint_names=robot.joint_names)
print(f"{robot.n_joints} joints, {first.time[-1] - first.time[0]:.0f} s and {second.time[-1] - second.time[0]:.0f} s")

# %% Check the recordings, and whether the motion excites all parameters
for finding in check([first, second], robot, motion=True):
    print(f"{finding.severity}: {finding}")
print(judge(robot, [first]).summary())

# %% Identify the base parameters: estimates with confidence intervals, next to the values of the URDF
links = LinkIdentification(robot).fit(first)
print(links.summary())

# %% Validate on the motion that was not used for the fit
print(links.validate(second).table())

# %% Plot measured and predicted torque, both unfiltered
predicted_torque = links.model.predict_recording(second)
figure, axes = plt.subplots(robot.n_joints, sharex=True, squeeze=False, figsize=(8, 2 * robot.n_joints))
for axis, joint, measured, predicted in zip(
    axes[:, 0], robot.joint_names, second.torque.T, predicted_torque.T, strict=True
):
    axis.plot(second.time, measured, color="0.7", label="measured")
    axis.plot(second.time, predicted, label="predicted")
    axis.set_ylabel(f"{joint}, N m")
axes[0, 0].legend()
plt.show()

# %% Use the model: gravity torque at a pose, and torque for an acceleration from rest
pose = np.zeros((1, robot.n_joints))
velocity = np.zeros_like(pose)
acceleration = np.ones_like(pose)
print("gravity torque, N m:", robot.gravity_torque(pose, links.parameters).round(2))
print("torque for 1 rad/s^2 at all joints, N m:", links.predict(pose, velocity, acceleration).round(2))
