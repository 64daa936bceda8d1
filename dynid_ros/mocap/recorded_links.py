"""Link angles of a recording with markers, with estimates of clocks, pose of the camera and places of the markers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import MocapError, RecordingError
from dynid_ros.mocap.link_angles import LinkAngles, chain_angles
from dynid_ros.mocap.marker_assignment import assign, bodies
from dynid_ros.mocap.marker_set import MarkerSet, body_markers
from dynid_ros.mocap.markers import TRACK_GATE_M, tracks, without_repeated
from dynid_ros.mocap.registration import Registration, register
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.signals.clock_alignment import ClockAlignment, align_clocks

# Turns: angles by which bodies rotate within a short time. They do not depend on the poses of camera and markers.


GRID_STEP_S = 0.02
"""Spacing of the times at which turns are computed, s."""

TURN_INTERVAL_S = 0.1
"""Time over which a turn is measured, s: long enough to exceed the markers' noise, short enough to follow motion."""

MAX_GAP_INTERVALS = 1.5
"""Longest interval between two samples that is interpolated, in typical intervals."""


def grid(time: NDArray) -> NDArray:
    """Return the times (G,) at which turns can be determined, s."""
    return np.arange(time[0] + TURN_INTERVAL_S / 2, time[-1] - TURN_INTERVAL_S / 2, GRID_STEP_S)


def link_turns(robot: RobotModel, time: NDArray, q: NDArray) -> NDArray:
    """Return the angles (G, n) of the links' turns around each time of the grid, rad, for motions q (N, n)."""
    before, after = (
        robot.forward_kinematics(_interpolated(time, q, grid(time) + side))[..., :3, :3]
        for side in (-TURN_INTERVAL_S / 2, TURN_INTERVAL_S / 2)
    )
    return _angle(np.swapaxes(before, -1, -2) @ after)


def body_turns(time: NDArray, positions: NDArray) -> NDArray:
    """Return the angles (G,) of a body's turns around each time of the grid, rad.

    NaN where fewer than three of its markers are seen.

    Args:
        time: Times (M,), s.
        positions: Positions (M, Q, 3) of its markers, m; NaN where not seen.
    """
    sides = [_interpolated(time, positions, grid(time) + side) for side in (-TURN_INTERVAL_S / 2, TURN_INTERVAL_S / 2)]
    both = np.isfinite(sides[0]).all(axis=2) & np.isfinite(sides[1]).all(axis=2)
    count = np.maximum(both.sum(axis=1), 1)[:, None, None]
    arms = []
    for side in sides:
        filled = np.where(both[..., None], side, 0.0)
        centred = filled - filled.sum(axis=1, keepdims=True) / count
        arms.append(np.where(both[..., None], centred, 0.0))
    # Kabsch 1976: the rotation that carries one set of points best into the other.
    u, _, vt = np.linalg.svd(np.swapaxes(arms[0], 1, 2) @ arms[1])
    u[..., -1] *= np.sign(np.linalg.det(u) * np.linalg.det(vt))[:, None]
    return np.where(both.sum(axis=1) >= 3, _angle(u @ vt), np.nan)


def _interpolated(time: NDArray, values: NDArray, at: NDArray) -> NDArray:
    """Return values (G, ...) at times `at` (G,) by linear interpolation; NaN next to a NaN."""
    after = np.clip(np.searchsorted(time, at), 1, len(time) - 1)
    share = (at - time[after - 1]) / (time[after] - time[after - 1])
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    return values[after - 1] * (1 - share) + values[after] * share


def _angle(rotation: NDArray) -> NDArray:
    """Return the angles (...) of rotations (..., 3, 3), rad, from sine and cosine, which is exact for small angles."""
    sine = np.stack([rotation[..., i, j] - rotation[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))], axis=-1)
    return np.arctan2(np.linalg.norm(sine, axis=-1), np.trace(rotation, axis1=-2, axis2=-1) - 1)


MAX_OVERLAP_OFFSET_S = 1.0
"""Largest offset of clocks whose records overlap, s."""

MIN_CORRELATION = 0.8
SUFFICIENT_CORRELATION = 0.95
"""Smallest correlation of turns (the median of several bodies) that is accepted, and correlation above which no further
pair of body and link is tried."""


def first_clock(
    robot: RobotModel,
    recording: Recording,
    time: NDArray,
    positions: NDArray,
    bodies: Sequence[tuple[NDArray, int | None]],
) -> ClockAlignment:
    """Return the clock alignment at which each body turns as fast as its link.

    Args:
        robot: Model of the arm.
        recording: Recording of the joints of the arm, in its order.
        time: Times (M,) of the camera, s.
        positions: Marker positions (M, P, 3), m; NaN where not seen.
        bodies: Columns of three or more rigidly connected markers, and the index of their link. None: the link is
            unknown; the best pair of a body and a link is used.

    Raises:
        MocapError: Records do not overlap in time, and no body turns like a link.
    """
    overlap = min(recording.time[-1], time[-1]) - max(recording.time[0], time[0])
    near = overlap > 0.5 * min(recording.duration, time[-1] - time[0])
    moving = [(body_turns(time, positions[:, columns]), link) for columns, link in bodies if len(columns) >= 3]
    links = link_turns(robot, recording.time, recording.position)
    known = [(turns, links[:, link]) for turns, link in moving if link is not None and link >= 0]
    trials = [known] if known else [[(turns, column)] for turns, _ in moving for column in links.T]
    best: ClockAlignment | None = None
    error = "no body of three markers turns with a link"
    for pairs in trials:
        try:
            clock = align_clocks(
                grid(recording.time),
                np.stack([link for _, link in pairs], axis=1),
                grid(time),
                np.stack([turns for turns, _ in pairs], axis=1),
                longest=MAX_OVERLAP_OFFSET_S if near else None,
                drift=False,
            )
        except RecordingError as reason:
            error = str(reason)
            continue
        if _match(clock) > (MIN_CORRELATION if best is None else _match(best)):
            best = clock
        if best is not None and _match(best) > SUFFICIENT_CORRELATION:
            break
    if best is not None:
        return best
    if near:  # no body turns like a link: assume that both clocks agree
        return ClockAlignment(0.0, 0.0, float(time[[0, -1]].mean()), np.full(2, np.nan), np.empty(0), ())
    raise MocapError(
        f"{recording.source} and its markers do not overlap in time: joints from {recording.time[0]:.3f} to "
        f"{recording.time[-1]:.3f} s, markers from {time[0]:.3f} to {time[-1]:.3f} s, and at no offset do bodies turn "
        f"as links do ({error}); record both at once"
    )


def _match(clock: ClockAlignment) -> float:
    """Return the median correlation of an alignment."""
    return float(np.nanmedian(clock.correlation))


@dataclass(frozen=True, eq=False)
class Stream:
    """Points of one marker or body.

    Attributes:
        time: Times (N,), s.
        points: Points (N, Q, 3), m; NaN where not seen.
    """

    time: NDArray
    points: NDArray


def on_one_clock(streams: Mapping[str, Stream]) -> tuple[NDArray, dict[str, NDArray]]:
    """Return the times (M,) of the fastest stream, and the points (M, Q, 3) of each stream at these times.

    Streams of one camera have equal time stamps and remain unchanged. Otherwise points are interpolated linearly, and
    are NaN in gaps.
    """
    if not streams:
        raise MocapError("no markers or bodies to take link angles from; expected topics of PoseStamped or PoseArray")
    ordered = {}
    for name, stream in streams.items():
        stamps, first = np.unique(stream.time, return_index=True)
        if len(stamps) < 2:
            raise MocapError(f"'{name}' has {len(stamps)} samples; expected the whole motion")
        ordered[name] = Stream(stamps, without_repeated(stream.points[first]))
    time = max((stream.time for stream in ordered.values()), key=len)
    return time, {name: _at(stream, time) for name, stream in ordered.items()}


def _at(stream: Stream, time: NDArray) -> NDArray:
    """Return the points (M, Q, 3) of a stream at times (M,), by linear interpolation; NaN in gaps."""
    if len(stream.time) == len(time) and np.array_equal(stream.time, time):
        return stream.points
    after = np.clip(np.searchsorted(stream.time, time), 1, len(stream.time) - 1)
    before = after - 1
    interval = stream.time[after] - stream.time[before]
    share = (time - stream.time[before]) / interval
    bridged = (interval <= MAX_GAP_INTERVALS * np.median(np.diff(stream.time))) & (share >= 0) & (share <= 1)
    weight = share[:, None, None]
    points = np.where(weight > 0, stream.points[after] * weight, 0.0)
    points = points + np.where(weight < 1, stream.points[before] * (1 - weight), 0.0)
    return np.where(bridged[:, None, None], points, np.nan)


MARKER = re.compile(r"(.*)\[\d+\]$")
"""Pattern of the names of markers of a PoseArray, "<topic>[<index>]"."""

FIRST_OFFSET_ERROR_S = 0.3
"""Largest error of the first clock offset, s."""

CONVERGENCE_OFFSET_S = 2e-4
"""Change of the clock offset at which the iteration ends, s."""

MAX_ITERATIONS = 4
MAX_JUMP_SHARE = 0.01
"""Fraction of frames with a jump above which the indices of a PoseArray do not identify markers."""

Columns = dict[str, tuple[list[int], str | None]]
"""Columns of each marker or body among all positions, and its link, by name; None: the link is unknown."""


@dataclass(frozen=True, eq=False)
class MocapLinks:
    """Link angles of a recorded motion that a camera measured.

    Attributes:
        angles: Angles of the links at times of the camera's clock.
        registration: Pose of the camera and places of the markers.
        clock: Alignment of the camera's clock with the robot's.
    """

    angles: LinkAngles
    registration: Registration
    clock: ClockAlignment

    def robot_time(self) -> NDArray:
        """Return the times (M,) of the link angles on the recording's clock, s."""
        return self.clock.to_robot(self.angles.time)


def mocap_links(
    robot: RobotModel,
    recording: Recording,
    links: Mapping[str, str | None] | None = None,
    *,
    offsets: bool = False,
    stiff: bool = False,
) -> MocapLinks:
    """Estimate link angles from the markers and rigid bodies of a recording.

    Registration, link angles and clocks depend on each other. A first clock offset follows from turns; then
    registration, angles and offset are estimated in turn until the offset converges.

    Args:
        robot: Model of the arm.
        recording: Recording with `poses` and the joints of `robot`, all of which should move.
        links: Link of each body (a topic of PoseStamped) or marker ("<topic>[<index>]" of a PoseArray). A topic of a
            PoseArray means all its markers. For a link of None, the link is estimated. None: all markers of the
            recording, with estimated links.
        offsets: Whether constant differences between zeros of encoders and links are estimated, see `register`.
        stiff: Whether the registration assumes links at the positions of their motors, see `register`.

    Raises:
        MocapError: The recording lacks a name, there is no common motion, or markers do not suffice; see `register`,
            `assign` and `chain_angles`.
        RecordingError: Joints are missing, or the motion does not determine the clocks' offset.
    """
    motion = recording.select(robot.joint_names)
    time, positions, columns = _markers(robot, motion, links)
    columns, positions, remarks = _tracked(columns, positions, time)
    clock = first_clock(robot, motion, time, positions, _bodies(robot, columns, positions))
    spline = CubicSpline(motion.time, motion.position, extrapolate=False)
    markers, positions, more = _assigned(robot, columns, positions, spline(clock.to_robot(time)))
    camera = None
    for _ in range(MAX_ITERATIONS):
        motor = spline(clock.to_robot(time))
        registration = register(robot, markers, motor, positions, offsets=offsets, stiff=stiff, camera=camera)
        camera = registration.camera
        angles = chain_angles(
            robot, registration.markers, positions, registration.camera, time, seed=motor + registration.offsets
        )
        before = clock.offset
        shifted = align_clocks(
            motion.time, motion.position, time + before, angles.position, longest=FIRST_OFFSET_ERROR_S
        )
        clock = shifted._replace(offset=shifted.offset + before, middle=shifted.middle - before)
        if abs(clock.offset - before) < CONVERGENCE_OFFSET_S:
            break
    angles = replace(
        angles,
        offsets=registration.offsets,
        remarks=(*remarks, *more, *registration.undecided, *registration.remarks, *angles.remarks),
    )
    return MocapLinks(angles, registration, clock)


def _markers(
    robot: RobotModel, recording: Recording, links: Mapping[str, str | None] | None
) -> tuple[NDArray, NDArray, Columns]:
    """Return times (M,), positions (M, P, 3) of all markers, and the columns and link of each body or marker."""
    poses = recording.poses
    wanted: dict[str, str | None] = {}
    for name, link in (dict.fromkeys(poses) if links is None else links).items():
        members = [key for key in poses if key == name or re.fullmatch(re.escape(name) + r"\[\d+\]", key)]
        if not members:
            raise MocapError(f"{recording.source} has no '{name}'; it has {', '.join(poses) or 'no poses at all'}")
        if link is not None and link not in (*robot.link_names, robot.base):
            raise MocapError(
                f"'{name}' is to be on link '{link}'; expected one of {', '.join((robot.base, *robot.link_names))}"
            )
        wanted.update(dict.fromkeys(members, link))
    streams = {}
    for name in wanted:
        series = poses[name]
        # Single markers from a file of the camera system have arbitrary names, but no orientation.
        single = MARKER.match(name) or not np.isfinite(series.quaternion).any()
        points = series.position[:, None] if single else body_markers(series.position, series.quaternion)
        streams[name] = Stream(series.time, points)
    time, points_of = on_one_clock(streams)
    columns: Columns = {}
    start = 0
    for name, points in points_of.items():
        columns[name] = (list(range(start, start + points.shape[1])), wanted[name])
        start += points.shape[1]
    return time, np.concatenate(list(points_of.values()), axis=1), columns


def _bodies(robot: RobotModel, columns: Columns, positions: NDArray) -> list[tuple[NDArray, int | None]]:
    """Return columns of rigidly connected markers with the index of their link.

    If any links are known, these are the markers of each known link. Otherwise markers with constant distances form
    bodies, with None for the link.
    """
    known: dict[str, list[int]] = {}
    for where, link in columns.values():
        if link in robot.link_names:
            known.setdefault(str(link), []).extend(where)
    if known:
        return [(np.array(where), robot.link_names.index(link)) for link, where in known.items()]
    some = positions[np.unique(np.linspace(0, len(positions) - 1, 500).astype(int))]
    body = bodies(some)
    return [(np.flatnonzero(body == number), None) for number in range(body.max() + 1)]


def _tracked(columns: Columns, positions: NDArray, time: NDArray) -> tuple[Columns, NDArray, list[str]]:
    """Replace markers of unknown link by tracks if their indices do not identify them; add a remark then."""
    loose = [name for name, (_, link) in columns.items() if link is None and MARKER.match(name)]
    where = [columns[name][0][0] for name in loose]
    steps = np.linalg.norm(np.diff(positions[:, where], axis=0), axis=2)
    jumps = np.any(np.where(np.isfinite(steps), steps, 0.0) > TRACK_GATE_M, axis=1)
    if not loose or np.mean(jumps) <= MAX_JUMP_SHARE:
        return columns, positions, []
    joined = tracks(positions[:, where], time)
    first = positions.shape[1]
    kept = {name: entry for name, entry in columns.items() if name not in loose}
    new: Columns = {f"track {i}": ([first + i], None) for i in range(joined.shape[1])}
    remark = f"indices of markers change from frame to frame: {joined.shape[1]} tracks were made of them"
    return kept | new, np.concatenate([positions, joined], axis=1), [remark]


def _assigned(
    robot: RobotModel, columns: Columns, positions: NDArray, motor: NDArray
) -> tuple[MarkerSet, NDArray, list[str]]:
    """Return the markers on links, their positions (M, P, 3), and remarks; unknown links are estimated."""
    points = [
        (name if len(where) == 1 else f"{name} ({i})", column, link, name)
        for name, (where, link) in columns.items()
        for i, column in enumerate(where)
    ]
    loose = [point for point in points if point[2] is None]
    remarks: list[str] = []
    if loose:
        assignment = assign(robot, motor, positions[:, [column for _, column, _, _ in loose]])
        assigned = list(zip(loose, assignment.links, strict=True))
        points = [point for point in points if point[2] is not None]
        points += [(name, column, link, body) for (name, column, _, body), link in assigned if link is not None]
        pairs = ", ".join(f"{name} on {link}" for (name, *_), link in assigned)
        remarks = [f"links found: {pairs}", *assignment.remarks]
    names, where, links, body = zip(*points, strict=True)
    markers = MarkerSet.on_links(robot, [str(link) for link in links], names=names, bodies=body)
    return markers, positions[:, list(where)], remarks
