"""What a camera system sees as ROS has it: poses of markers, and of the rigid bodies that they make up."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.series import PoseSeries
from dynid_ros.simulation.arm import SimulatedArm
from dynid_ros.simulation.camera import Camera

FRAME = "camera"
ENOUGH = 3


def filmed(
    recording: Recording,
    true: Recording,
    arm: SimulatedArm,
    camera: Camera,
    markers: MarkerSet,
    *,
    rng: np.random.Generator,
    markers_topic: str = "/markers",
    bodies_prefix: str = "",
) -> Recording:
    """`recording` with what `camera` saw meanwhile, on the camera's clock.

    Args:
        recording: what the joints' sensors say of the motion.
        true: the motion, with the positions of the links.
        arm: that moved.
        camera: looks at it.
        markers: on the arm's links.
        rng: draws all that goes wrong.
        markers_topic: of the markers; empty: without them.
        bodies_prefix: rigid bodies are on "<bodies_prefix>/<link>/pose"; empty: without them.

    Raises:
        DynidError: `true` does not tell where the links were.

    """
    stamps, seen = camera.film(true, arm.truth, markers, rng)
    poses = dict(recording.poses)
    if markers_topic:
        poses |= marker_poses(stamps, seen, markers_topic)
    if bodies_prefix:
        poses |= body_poses(stamps, seen, markers, arm.robot, bodies_prefix)
    return replace(recording, poses=poses)


def body_pose(seen: NDArray, places: NDArray) -> tuple[NDArray, NDArray]:
    """Positions (M, 3) and quaternions (M, 4), x, y, z, w, of a rigid body from its markers, as trackers fit it.

    The rotation is that of Kabsch (1976).

    Args:
        seen: (M, P, 3) where its markers seem to be, m; NaN where hidden.
        places: (P, 3) in the body's frame, m.

    Returns:
        NaN where fewer than three markers are seen.

    """
    good = np.isfinite(seen).all(axis=2)
    enough = good.sum(axis=1) >= ENOUGH
    weights = np.where(enough[:, np.newaxis], good, True)[..., np.newaxis]
    weights = weights / weights.sum(axis=1, keepdims=True)
    seen = np.where(good[..., np.newaxis], seen, 0.0)
    there, here = (weights * seen).sum(axis=1), (weights * places).sum(axis=1)
    moment = np.swapaxes(weights * (seen - there[:, np.newaxis]), 1, 2) @ (places - here[:, np.newaxis])
    left, _, right = np.linalg.svd(moment)
    left[..., -1] *= np.sign(np.linalg.det(left @ right))[:, np.newaxis]
    rotation = left @ right
    position = there - (rotation @ here[..., np.newaxis])[..., 0]
    quaternion = Rotation.from_matrix(rotation).as_quat()
    return np.where(enough[:, np.newaxis], position, np.nan), np.where(enough[:, np.newaxis], quaternion, np.nan)


def marker_poses(stamps: NDArray, seen: NDArray, topic: str) -> dict[str, PoseSeries]:
    """Markers (M, P, 3) as a recording holds those of a PoseArray topic."""
    quaternion = np.where(np.isfinite(seen[..., :1]), [0.0, 0.0, 0.0, 1.0], np.nan)
    return {f"{topic}[{i}]": PoseSeries(stamps, seen[:, i], quaternion[:, i], FRAME) for i in range(seen.shape[1])}


def body_poses(
    stamps: NDArray, seen: NDArray, markers: MarkerSet, robot: RobotModel, prefix: str
) -> dict[str, PoseSeries]:
    """Links with three markers or more as rigid bodies, posed by their own frames, as PoseStamped topics."""
    poses = {}
    for topic, on in body_topics(markers, robot, prefix).items():
        poses[topic] = PoseSeries(stamps, *body_pose(seen[:, on], markers.places[on]), FRAME)
    return poses


def body_topics(markers: MarkerSet, robot: RobotModel, prefix: str) -> dict[str, NDArray]:
    """Topic "<prefix>/<link>/pose" of each link with three markers or more, and which of the markers these are."""
    topics = {}
    for index in np.unique(markers.links):
        on = np.flatnonzero(markers.links == index)
        if len(on) >= ENOUGH:
            topics[f"{prefix}/{(*robot.link_names, robot.base)[index]}/pose"] = on
    return topics
