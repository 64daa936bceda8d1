"""Standard Denavit-Hartenberg tables, against the same arm as a URDF in Pinocchio."""

import numpy as np
import pytest
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel

ROW = {"a": 0.1, "alpha": 0.2, "d": 0.3, "theta": 0.4, "type": "revolute"}


def _random_rows(rng: np.random.Generator, n: int) -> list[dict]:
    kinds = rng.choice(["revolute", "prismatic"], size=n, p=[0.7, 0.3])
    return [{**dict(zip(ROW, rng.uniform(-1.5, 1.5, 4), strict=False)), "type": str(kind)} for kind in kinds]


def _as_urdf(rows: list[dict]) -> str:
    """Return the URDF of a table; the motion about z is between Rz(theta) Tz(d) and Tx(a) Rx(alpha)."""
    parts = ['<link name="link_0"/>']
    for i, row in enumerate(rows, 1):
        a, alpha, d, theta = (float(row[key]) for key in ("a", "alpha", "d", "theta"))
        parts.append(
            f'<joint name="joint_{i}" type="{row["type"]}"><parent link="link_{i - 1}"/><child link="moved_{i}"/>'
            f'<origin xyz="0 0 {d!r}" rpy="0 0 {theta!r}"/><axis xyz="0 0 1"/>'
            '<limit lower="-9" upper="9" velocity="1" effort="1"/></joint>'
            f'<link name="moved_{i}"/><joint name="distal_{i}" type="fixed"><parent link="moved_{i}"/>'
            f'<child link="link_{i}"/><origin xyz="{a!r} 0 0" rpy="{alpha!r} 0 0"/></joint><link name="link_{i}"/>'
        )
    return f'<robot name="dh">{"".join(parts)}</robot>'


def test_dh_arms_agree_with_pinocchio():
    pinocchio = pytest.importorskip("pinocchio")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 8))
        rows = _random_rows(rng, n)
        parameters = rng.uniform(0.1, 1.0, 10 * n)
        robot = RobotModel.from_dh(rows, gravity=(1.0, 2.0, -9.0), parameters=parameters)
        arm = PinocchioArm(_as_urdf(rows), robot.joint_names, robot.gravity)
        distal = [arm.model.frames[arm.model.getFrameId(name)] for name in robot.link_names]
        for i, body in enumerate(parameters.reshape(n, 10)):
            in_pinocchio_order = body[[0, 1, 2, 3, 4, 5, 7, 6, 8, 9]]
            inertia = pinocchio.Inertia.FromDynamicParameters(in_pinocchio_order)
            arm.model.inertias[i + 1] = distal[i].placement.act(inertia)
        q, qd, qdd = rng.normal(size=(3, 4, n))
        torques = robot.inverse_dynamics(q, qd, qdd)
        poses = robot.forward_kinematics(q)
        from_regressor = robot.torque_regressor(q, qd, qdd) @ parameters
        for k in range(len(q)):
            expected = arm.inverse_dynamics(q[k], qd[k], qdd[k])
            np.testing.assert_allclose(torques[k], expected, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(from_regressor[k], expected, rtol=1e-10, atol=1e-10)
            expected_poses = arm.poses(q[k]) @ np.array([frame.placement.homogeneous for frame in distal])
            np.testing.assert_allclose(poses[k], expected_poses, rtol=0, atol=1e-10)


def test_default_names_limits_and_parameters():
    robot = RobotModel.from_dh([ROW, {**ROW, "type": "prismatic"}])
    assert robot.joint_names == ("joint_1", "joint_2")
    assert robot.link_names == ("link_1", "link_2")
    assert (robot.base, robot.tip) == ("base", "link_2")
    assert robot.joint_types == ["revolute", "prismatic"]
    assert robot.urdf is None
    assert robot.urdf_sha256 is None
    np.testing.assert_array_equal(robot.parameters, np.zeros(20))
    for limit in (-robot.limits.lower, robot.limits.upper, robot.limits.velocity, robot.limits.effort):
        np.testing.assert_array_equal(limit, [np.inf, np.inf])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({**ROW, "offset": 0.0}, ("row 2", "unknown offset")),
        ({key: ROW[key] for key in ("a", "d", "theta", "type")}, ("row 2", "missing alpha")),
        ({**ROW, "type": "spherical"}, ("row 2", "spherical", "revolute, prismatic")),
        ({**ROW, "alpha": "90°"}, ("row 2", "alpha", "90°")),
        ({**ROW, "a": float("nan")}, ("row 2", "a is nan")),
        ({**ROW, "d": None}, ("row 2", "d is None")),
        ([0.1, 0.2, 0.3, 0.4], ("row 2", "mapping")),
    ],
)
def test_refuses_wrong_rows(row, words):
    with pytest.raises(ModelError) as error:
        RobotModel.from_dh([ROW, row])
    assert all(word in str(error.value) for word in words)
    with pytest.raises(ModelError, match="no rows"):
        RobotModel.from_dh([])
    with pytest.raises(ModelError, match=r"\(10,\)"):
        RobotModel.from_dh([ROW], parameters=np.zeros(20))


TABLE = """
- {a: 0.0, alpha: 1.5708, d: 0.3, theta: 0.0, type: revolute}
- {a: 0.4, alpha: 0.0, d: 0.0, theta: 0.1, type: prismatic}
"""


@pytest.mark.parametrize(
    ("text", "name"), [(TABLE, "arm"), ("name: other\njoints:" + TABLE, "other"), ("joints:" + TABLE, "arm")]
)
def test_reads_a_table_from_a_file(tmp_path, text, name):
    path = tmp_path / "arm.yaml"
    path.write_text(text)
    robot = RobotModel.from_dh(path)
    assert robot.name == name
    rows = [
        {"a": 0.0, "alpha": 1.5708, "d": 0.3, "theta": 0.0, "type": "revolute"},
        {"a": 0.4, "alpha": 0.0, "d": 0.0, "theta": 0.1, "type": "prismatic"},
    ]
    assert robot.kinematics_sha256 == RobotModel.from_dh(rows).kinematics_sha256


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("joints: 3", "expected a list of rows with keys a, alpha, d, theta, type"),
        ("rows: []", "expected a list of rows"),
        ("- [0, 1]", "row 1: it is .0, 1.; expected a mapping"),
        ("- {a: 1}: [", "not plain YAML"),
    ],
)
def test_refuses_a_file_without_a_table(tmp_path, text, message):
    path = tmp_path / "arm.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ModelError, match=f"^DH table.*{message}"):
        RobotModel.from_dh(path)
