"""Check limits, floor and contacts of the demo arm by MuJoCo's reading of its URDF."""

from pathlib import Path

import numpy as np
import pytest

DEMO_ARM = Path(__file__).parents[2] / "config" / "demo_arm.urdf"
DEMO_SPEEDS = np.array([1.5, 1.5, 2.0, 3.0, 3.0, 3.0])


def check_demo_arm(position: np.ndarray, margin: float | np.ndarray, floor: float) -> None:
    """Assert that positions (N, 6) are within limits minus `margin`, above the floor and without contact."""
    mujoco = pytest.importorskip("mujoco")
    spec = mujoco.MjSpec.from_string(DEMO_ARM.read_text())
    spec.compiler.fusestatic = False
    model = spec.compile()
    data = mujoco.MjData(model)
    moving = [model.body(f"link_{i}").id for i in range(3, 7)] + [model.body("tool").id]
    assert np.all(position >= model.jnt_range[:, 0] + margin)
    assert np.all(position <= model.jnt_range[:, 1] - margin)
    for pose in position:
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        assert data.ncon == 0
        assert data.xpos[moving, 2].min() >= floor - 1e-3
