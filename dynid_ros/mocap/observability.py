"""Why some joints stay unknown in some frames, in words."""

from __future__ import annotations

from numpy.typing import NDArray

from dynid_ros.mocap.frame_fit import LEVER, FrameFit
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.model import RobotModel


def unknown_joints(robot: RobotModel, markers: MarkerSet, fit: FrameFit) -> list[str]:
    """One sentence for each joint that some frame does not tell, with the reasons and how often each holds."""
    used = (fit.weights > 0).astype(int)
    beyond = used @ markers.beyond(robot.n_joints).astype(int)
    remarks = []
    for j, name in enumerate(robot.joint_names):
        unknown = ~fit.told[:, j]
        if not unknown.any():
            continue
        if not (markers.links >= j).any():
            remarks.append(f"{name}: not known, it moves no marker")
            continue
        unseen = unknown & (beyond[:, j] == 0)
        axial = unknown & ~unseen & (fit.reach[:, j] < LEVER)
        mingled = unknown & ~unseen & ~axial
        reasons = []
        if unseen.any():
            reasons.append(f"no marker beyond it was seen ({unseen.sum()})")
        if axial.any():
            reasons.append(f"those seen lie on its axis ({axial.sum()})")
        if mingled.any():
            reasons.append(
                f"the markers seen do not tell it from {_partners(robot, fit, j, mingled)} ({mingled.sum()}): too few, "
                "or a singular pose"
            )
        remarks.append(f"{name}: not known in {unknown.sum()} of {len(unknown)} frames: {'; '.join(reasons)}")
    return remarks


def _partners(robot: RobotModel, fit: FrameFit, joint: int, frames: NDArray) -> str:
    """Joints that are unknown together with one, in most of these frames."""
    together = (~fit.told[frames]).mean(axis=0) > 0.5
    together &= (fit.reach[frames] >= LEVER).mean(axis=0) > 0.5
    together[joint] = False
    return ", ".join(name for name, other in zip(robot.joint_names, together, strict=True) if other) or "other joints"
