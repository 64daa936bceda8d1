"""What a recording cannot tell: faults that would not show in it, so that nobody takes silence for a proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.checks import hypotheses as lag_check
from dynid_ros.recording.checks.finding import LIKELY, SIGN, SWAP, Explanation
from dynid_ros.recording.checks.hypotheses import RATIO
from dynid_ros.recording.checks.hypotheses import SEEN as TILT_SEEN
from dynid_ros.recording.checks.link_origin import SEEN as ORIGIN_SEEN
from dynid_ros.recording.checks.link_origin import origin_columns
from dynid_ros.recording.checks.torque_fit import MotionSamples, TorqueEquations, TorqueFit, TorqueModel

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

TILT, SHIFT, LAG = 5.0, 0.1, 0.03
"""Faults that should show: degrees, m, s."""
PUSHING = (
    "signs that only friction tells, and its drift: what looks like friction pushes, as where effort is sampled at "
    "another time than position"
)
"""Said where gravity says that signs are right, and friction that they are not."""
MOST = 6
"""Names in a line."""
SUBJECTS = {
    SIGN: "sign of torque or position",
    SWAP: "order",
    RATIO: "gear ratio of the position (half or twice)",
}


def undecided_hypotheses(explanations: Sequence[Explanation]) -> Iterator[str]:
    """Hypotheses that explain the torques about as well as the recording as it is."""
    for kind, subject in SUBJECTS.items():
        joints = [e.joints for e in explanations if e.kind == kind and e.joints and e.gain > -LIKELY]
        named = dict.fromkeys(" and ".join(names) if kind == SWAP else names[0] for names in joints)
        if named:
            yield f"{subject}: {_listed(list(named))}"


def undecided_joints(robot: RobotModel, equations: TorqueEquations) -> Iterator[str]:
    """Joints of which nothing can be determined."""
    names = [name for j, name in enumerate(robot.joint_names) if j not in equations.judged]
    if names:
        yield f"anything about joints that hardly move: {', '.join(names)}"


def undecided_geometry(
    model: TorqueModel, samples: MotionSamples, equations: TorqueEquations, given: TorqueFit
) -> Iterator[str]:
    """A tilt of the base, a lag, or a wrong length that would not show: what the model predicts is changed by it."""
    robot = model.robot
    if samples.torque.shape[1] > 1 and _hidden_lag(samples, equations, given):
        yield f"a lag of {1e3 * LAG:.0f} ms between torques and positions"
    size = float(np.linalg.norm(robot.gravity))
    if size:
        of_gravity = model.rigid_of_gravity(samples) @ given.rigid
        tangents = np.linalg.svd((robot.gravity / size)[None])[2][1:]
        changes = np.radians(TILT) * size * np.tensordot(tangents, of_gravity, 1)
        if min(_harm(equations, given, samples.torque + change) for change in changes) < TILT_SEEN:
            yield f"a base that is tilted by {TILT:.0f} degrees"
    hidden = [
        robot.joint_names[joint]
        for joint, columns in origin_columns(model, samples, given.rigid)
        if max(_harm(equations, given, samples.torque + SHIFT * column) for column in np.moveaxis(columns, 2, 0))
        < ORIGIN_SEEN
    ]
    if hidden:
        yield f"an origin that is {100 * SHIFT:.0f} cm off in the URDF: {', '.join(hidden)}"


def _harm(equations: TorqueEquations, given: TorqueFit, torque: NDArray) -> float:
    """How much worse the model would fit these torques."""
    return equations.explaining(torque).fit().misfit - given.misfit


def _hidden_lag(samples: MotionSamples, equations: TorqueEquations, given: TorqueFit) -> bool:
    late = [equations.explaining(samples.delayed_torque(lag)).fit() for lag in (-LAG, LAG)]
    return min(fit.shared_gain(given) for fit in late) < lag_check.SHARED


def _listed(names: list[str]) -> str:
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")
