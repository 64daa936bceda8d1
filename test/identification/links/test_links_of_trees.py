"""Link identification of an arm with a mimic-joint gripper, and of a two-armed robot."""

import numpy as np
import pytest
from gripper_arms import middle_gripper
from pinocchio_arm import MimickingArm
from urdf_parts import joint, link, robot

from dynid_ros.control import load_gravity_torque
from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import link_model
from dynid_ros.model import FrictionModel, JointFriction, RobotModel
from dynid_ros.model.urdf_export import urdf_with_inertias
from dynid_ros.recording import Recording

TWO_ARMS = robot(
    *(link(name) for name in ("base", "torso", "left", "left_hand", "right", "right_hand")),
    joint("waist", "base", "torso"),
    joint("left_1", "torso", "left", axis="0 1 0", content='<origin xyz="0 0.3 0.5"/>'),
    joint("left_2", "left", "left_hand", axis="0 1 0", content='<origin xyz="0.4 0 0"/>'),
    joint("right_1", "torso", "right", axis="0 1 0", content='<origin xyz="0 -0.3 0.5"/>'),
    joint("right_2", "right", "right_hand", axis="1 0 0", content='<origin xyz="0.4 0 0"/>'),
)
ROBOTS = {
    "gripper": (middle_gripper().replace("other_slide", "thumb_slide"), "all"),
    "two arms": (TWO_ARMS, "left_hand,right_hand"),
}
FRICTION = JointFriction(offset=True)


def _record(arm: MimickingArm, names: tuple[str, ...], seed: int) -> Recording:
    rng = np.random.default_rng(seed)
    time = np.arange(0, 12, 0.01)
    motion = np.zeros((3, len(time), len(names)))
    for harmonic in range(1, 6):
        w = 2 * np.pi * 0.1 * harmonic
        angle = w * time[:, None] + rng.uniform(0, 2 * np.pi, len(names))
        size = rng.uniform(0.2, 0.6, len(names)) / harmonic**0.5
        motion += size * np.stack([np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)])
    torque = np.array([arm.inverse_dynamics(*sample) for sample in np.transpose(motion, (1, 0, 2))])
    torque += FrictionModel(FRICTION).regressor(motion[1], motion[2]) @ np.tile([0.4, 0.3, 0.1], len(names))
    torque += rng.normal(0, 0.02, torque.shape)
    return Recording(names, time, motion[0], motion[1], torque, source=f"run_{seed}")


@pytest.mark.parametrize("name", ["gripper", pytest.param("two arms", marks=pytest.mark.slow)])
def test_identifies_links_and_gravity_of_a_tree(name, tmp_path):
    text, tip = ROBOTS[name]
    tree = RobotModel.from_urdf(text, tip)
    truth = tree.parameters.reshape(-1, 10) * np.random.default_rng(0).uniform(0.7, 1.3, (tree.n_links, 1))
    arm = MimickingArm(tree, tmp_path, urdf_with_inertias(tree, truth.ravel()))
    fitted, held_out = (_record(arm, tree.joint_names, seed) for seed in (1, 2))
    result = LinkIdentification(tree, friction=FRICTION).fit(fitted)
    assert result.validate(held_out).relative_rms.max() < 0.05
    true = result.base.project(np.concatenate([truth.ravel(), np.tile([0.4, 0.3, 0.1], tree.n_joints)]))
    lower, upper = np.transpose(result.base_parameters.confidence_intervals(0.99))
    assert np.mean((lower <= true) & (true <= upper)) > 0.9
    result.save(tmp_path / "arm.identified.yaml")
    read = link_model(load_identified(tmp_path / "arm.identified.yaml"), tree)
    np.testing.assert_allclose(read.parameters, result.parameters, rtol=1e-6, atol=1e-9)
    saved_arm = MimickingArm(tree, tmp_path, result.urdf)
    poses = np.random.default_rng(3).normal(size=(20, tree.n_joints))
    still = np.zeros(tree.n_joints)
    torque = np.array([saved_arm.inverse_dynamics(q, still, still) for q in poses])
    expected = np.array([arm.inverse_dynamics(q, still, still) for q in poses])
    assert np.abs(torque - expected).max() < 0.01 * np.abs(expected).max()
    _, compensation = load_gravity_torque(tmp_path / "arm.identified.yaml", text)
    np.testing.assert_allclose(compensation(poses[0].tolist()), torque[0], rtol=0, atol=1e-6 * np.abs(torque).max())
