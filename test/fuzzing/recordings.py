"""Fuzzing targets: recordings of arms and of camera systems."""

# ruff: noqa: E501 - tables of inputs

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import planar_arm
from bag_files import START, float_array, joint_state, pose, wrench, write_bag
from fuzzing import arms
from fuzzing.mutations import BINARY_MUTATIONS, PLAN, texts
from fuzzing.outcome import require
from fuzzing.target import Target
from hypothesis import strategies as st
from rosbags.rosbag2 import StoragePlugin

from dynid_ros.errors import DynidError
from dynid_ros.recording import EffortConvention, PoseSeries, Recording, WrenchSeries, add_poses, check, read_mocap

N = 12
NAMES = planar_arm.JOINTS
TIME = 0.01 * np.arange(N)
POSITION = np.sin(TIME[:, None] * [1.0, 2.0, 3.0])
CURRENTS = EffortConvention("motor_current", [1.0, 2.0, 3.0])


def read_recording(path: Path, **more: Any) -> None:
    """Require that an accepted recording is consistent and can be checked."""
    refused = None
    for names, convention in ((None, None), (NAMES, None), (NAMES, CURRENTS)):
        try:
            recording = Recording.read(path, names, effort_convention=convention, **more)
        except DynidError as error:
            refused = refused or error
            continue
        require_recording(recording)
        if recording.joint_names == NAMES:
            check(recording, arms.create_robot())
        return
    assert refused is not None
    raise refused


def require_recording(recording: Recording) -> None:
    """Require consistent shapes, increasing time and finite positions."""
    n = recording.n_samples
    joints = recording.n_joints
    require(n > 0 and joints > 0 and len(set(recording.joint_names)) == joints, "an empty recording or repeated names")
    require(all(isinstance(name, str) for name in recording.joint_names), "a name is no text")
    require(
        recording.time.shape == (n,) and np.isfinite(recording.time).all() and (np.diff(recording.time) > 0).all(),
        "time does not increase",
    )
    require(math.isfinite(recording.start_time) and math.isfinite(recording.duration), "no time")
    for array in (recording.position, recording.velocity, recording.torque, recording.link_position):
        require(array is None or array.shape == (n, joints), "a shape is wrong")
        require(array is None or not np.isinf(array).any(), "infinite")
    require(np.isfinite(recording.position).all(), "a position is not finite")
    for series in recording.wrenches.values():
        require(isinstance(series, WrenchSeries), "no series")
        require(series.time.shape == series.force.shape[:1] == series.torque.shape[:1], "a wrench lacks time")
    require_poses(recording.poses)


def require_poses(poses: Any) -> None:
    """Require consistent shapes and finite or missing samples of each track."""
    for series in poses.values():
        require(isinstance(series, PoseSeries), "no series")
        require(series.position.shape == (len(series.time), 3), "a shape is wrong")
        require(series.quaternion.shape == (len(series.time), 4), "a shape is wrong")
        require(not np.isinf(series.position).any() and not np.isinf(series.quaternion).any(), "infinite")


def fuzz_table(data: bytes, folder: Path) -> None:
    """Read a CSV table."""
    path = folder / "run.csv"
    path.write_bytes(data)
    read_recording(path)


def fuzz_archive(data: bytes, folder: Path) -> None:
    """Read an NPZ archive."""
    path = folder / "run.npz"
    path.write_bytes(data)
    read_recording(path)


def fuzz_camera(data: bytes, folder: Path) -> None:
    """Read an export of a camera system and add it to a recording."""
    path = folder / "take.csv"
    path.write_bytes(data)
    refused = None
    for unit, rate in ((None, None), ("mm", 100.0)):
        try:
            poses = read_mocap(path, unit, rate)
        except DynidError as error:
            refused = refused or error
            continue
        require(poses, "no track")
        require_poses(poses)
        require(all((np.diff(series.time) > 0).all() for series in poses.values()), "time does not increase")
        add_poses(Recording(NAMES, TIME, POSITION, POSITION, POSITION), poses)
        return
    assert refused is not None
    raise refused


def create_bag_reader(suffix: str) -> Any:
    """Return a function that reads a bag of a single file."""

    def read(data: bytes, folder: Path) -> None:
        path = folder / f"run{suffix}"
        path.write_bytes(data)
        read_recording(path)

    return read


def fuzz_bag_folder(data: tuple[str, bytes, bytes], folder: Path) -> None:
    """Read a bag folder with `metadata.yaml`."""
    suffix, metadata, content = data
    for old in ("bag.mcap", "bag.db3"):
        (folder / old).unlink(missing_ok=True)
    (folder / "metadata.yaml").write_bytes(metadata)
    (folder / f"bag{suffix}").write_bytes(content)
    read_recording(folder)


def fuzz_bag_messages(data: list[tuple[str, int, Any]], folder: Path) -> None:
    """Read a valid bag of arbitrary messages."""
    for old in folder.glob("**/*"):
        if old.is_file():
            old.unlink()
    for old in folder.glob("*"):
        old.rmdir()
    write_bag(folder / "bag", data)
    read_recording(folder / "bag")
    topics = {topic for topic, *_ in data}
    if "/torques" in topics:
        read_recording(folder / "bag", torque_topic="/torques")
    if "/links" in topics:
        read_recording(folder / "bag", link_states_topic="/links", receive_time=True)


def _write_csv(header: str, width: int, rows: int = N) -> bytes:
    values = np.column_stack([0.01 * np.arange(rows), np.sin(np.arange(rows)[:, None] * np.arange(1, width))])
    return "\n".join([header, *(",".join(f"{value:.6g}" for value in row) for row in values)]).encode() + b"\n"


def _write_npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


TABLES = [
    _write_csv(
        ",".join(["t", *(f"{name}_{quantity}" for quantity in ("position", "velocity", "torque") for name in NAMES)]),
        10,
    ),
    _write_csv("time,q1,q2,q3,tau_1,tau_2,tau_3,note", 8),
    _write_csv(
        ",".join(["t", *(f"{name}_{quantity}" for quantity in ("q", "current", "link_position") for name in NAMES)]), 10
    ),
]
ARRAYS: dict[str, Any] = {
    "time": TIME, "position": POSITION, "velocity": POSITION, "torque": POSITION, "joint_names": np.array(NAMES),
    "start_time": 1.7e9, "truncated": False, "link_position": POSITION, "current": POSITION,
    "wrenches:/ft:time": TIME, "wrenches:/ft:force": POSITION, "wrenches:/ft:torque": POSITION, "wrenches:/ft:frame_id": "ft",
    "poses:/hand:time": TIME, "poses:/hand:position": POSITION, "poses:/hand:quaternion": np.ones((N, 4)),
    "poses:/hand:frame_id": "world",
}  # fmt: skip
ODD: list[Any] = [
    np.float64(3.0), np.zeros(0), np.zeros((0, 3)), np.zeros((N, 0)), np.full((N, 3), np.nan), np.full((N, 3), np.inf),
    np.arange(N), -TIME, np.zeros(N), POSITION.astype(complex), POSITION.astype(np.float16), POSITION > 0, np.array("abc"),
    np.array([["a"] * 3] * N), np.array(NAMES[:2]), np.array(["a", "a", "a"]), np.array([None, {}], dtype=object),
    np.zeros((N, 3), dtype="datetime64[s]"), np.zeros(N, dtype=[("a", float), ("b", int)]), np.zeros((N, 3, 1)),
    np.zeros(N, dtype="timedelta64[ns]"), POSITION.T, POSITION[:5], np.full((N, 3), 1e308), np.array(b"x"), TIME + 1e300,
    np.array([1, 2, 3]), np.array(["1.0"] * N), np.full((N, 3), 5e-324), np.array("\x1b[2J\n"), TIME * 1e-320,
    np.array(["x" * 1000] * 3), np.zeros((N, 3), dtype=">f4"),
]  # fmt: skip


def _write_archive(plan: bytes) -> bytes:
    arrays = {name: ARRAYS[name] for name in _WHOLE[plan[0] % len(_WHOLE)]}
    for i in range(2, 2 + plan[1] % 4):
        arrays[CHANGED[plan[i] % len(CHANGED)]] = ODD[plan[i + 3] % len(ODD)]
    return _write_npz(**arrays)


_KEYS = sorted(ARRAYS)
_WHOLE = [
    _KEYS,
    ["time", "position", "velocity", "torque", "joint_names"],
    ["time", "position", "current"],
    ["time", "position", "torque", "joint_names", *(key for key in _KEYS if key.startswith("poses"))],
]
ARCHIVES = [_write_npz(**{key: ARRAYS[key] for key in keys if key != "current"}) for keys in _WHOLE]
CHANGED = [*_KEYS, "t", "q", "tau", "poses::time", "wrenches:"]

CAMERAS = [
    "\n".join(lines).encode()
    for lines in (
        [
            "Format Version,1.23,Take Name,Take 1,Export Frame Rate,240.0,Rotation Type,Quaternion,Length Units,Meters",
            "",
            ",Type,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Marker,Marker,Marker",
            ",Name,link,link,link,link,link,link,link,m,m,m",
            ",ID,A,A,A,A,A,A,A,B,B,B",
            ",,Rotation,Rotation,Rotation,Rotation,Position,Position,Position,Position,Position,Position",
            "Frame,Time (Seconds),X,Y,Z,W,X,Y,Z,X,Y,Z",
            "0,0.00,0.1,0.2,0.3,0.9,1.0,2.0,3.0,0.5,0.6,0.7",
            "1,0.01,,,,,,,,0.5,0.6,0.7",
            "2,0.02,0.1,0.2,0.3,0.9,1.1,2.1,3.1,,,",
        ],
        [
            "Objects", "100", ",,Tool,,,,,,", "Frame,Sub Frame,RX,RY,RZ,RW,TX,TY,TZ", ",,,,,,mm,mm,mm", "1,0,0,0,0.6,0.8,10,20,30",
            "", "Trajectories", "250", ",,Arm:elbow,,,Arm:hand,,", "Frame,Sub Frame,X,Y,Z,X,Y,Z", ",,mm,mm,mm,mm,mm,mm",
            "101,0,1,2,3,4,5,6", "102,0,1.5,2.5,3.5,,,", "",
        ],
        [
            "NO_OF_FRAMES\t2", "NO_OF_CAMERAS\t13", "FREQUENCY\t200", "DATA_INCLUDED\t3D", "MARKER_NAMES\tWrist\tHip",
            "TRAJECTORY_TYPES\tMeasured\tMeasured", "-473.5\t191.9\t613.3\t1\t2\t3", "-473.6\t192.0\t613.4\t0.0\t0.0\t0.0",
        ],
        [
            "PathFileType\t4\t(X/Y/Z)\ttake.trc", "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits", "120\t120\t3\t2\tmm",
            "Frame#\tTime\tknee\t\t\tankle\t\t\t", "\t\tX1\tY1\tZ1\tX2\tY2\tZ2\t", "", "1\t0.000\t1\t2\t3\t4\t5\t6\t",
            "2\t0.008\t\t\t\t4\t5\t6\t", "3\t0.016\t1\t2\t3\t0\t0\t0",
        ],
        ["t,x1,y1,z1,hand_x,hand_y,hand_z,hand_qx,hand_qy,hand_qz,hand_qw", "0,1,2,3,4,5,6,0,0,0,1", "0.1,,,,4,nan,6,0,0,0,1"],
    )
]  # fmt: skip


def _create_messages() -> Any:
    for i in range(N):
        at = START + i * 10**7
        yield "/joint_states", at, joint_state(at, NAMES, POSITION[i], POSITION[i], POSITION[i])
        yield "/ft", at, wrench(at, (1.0, 2.0, 3.0), (0.1, 0.2, 0.3))
        yield "/torques", at, float_array(POSITION[i])


def write_bags(folder: Path) -> dict[str, tuple[bytes, bytes]]:
    """Return metadata and content of a valid bag by its suffix."""
    bags = {}
    for storage, suffix in ((StoragePlugin.MCAP, ".mcap"), (StoragePlugin.SQLITE3, ".db3")):
        path = write_bag(
            folder / suffix[1:] / "bag", _create_messages(), storage, chunk=None if suffix == ".db3" else 15
        )
        bags[suffix] = (path / "metadata.yaml").read_bytes(), (path / f"bag{suffix}").read_bytes()
    return bags


_NUMBER = st.sampled_from([0.0, 0.1, 1.0, -2.0, math.nan, math.inf, 1e308, 5e-324])
_FIELD = st.sampled_from([[0.1, 0.2, 0.3]] * 6 + [[]] * 2) | st.lists(_NUMBER, max_size=4)
_NAME_LISTS = st.sampled_from(
    [NAMES] * 9
    + [NAMES[::-1], NAMES[:2], (), ("a", "a", "a"), ("Δ", "b", "\x1b"), (*NAMES, "finger"), ("x" * 500,) * 3]
)
_STAMP = st.sampled_from([0, START, START + 5, -(10**9), 2**31 * 10**9 - 1, 1])


@st.composite
def _bag_message(draw: Any) -> tuple[str, int, Any]:
    received = draw(st.sampled_from([START, START + 10**7, START + 2 * 10**7, START + 3 * 10**7, 0, 2**63 - 1]))
    stamp = draw(st.just(received) | _STAMP)
    stamp = min(stamp, 2**31 * 10**9 - 1)
    kind = draw(st.sampled_from(["joints", "joints", "joints", "joints", "links", "torques", "ft", "pose"]))
    if kind in ("joints", "links"):
        names = draw(_NAME_LISTS)
        fields = [draw(_FIELD) for _ in range(3)]
        return ("/joint_states" if kind == "joints" else "/links"), received, joint_state(stamp, names, *fields)
    if kind == "torques":
        return "/torques", received, float_array(draw(_FIELD))
    three = [draw(_NUMBER) for _ in range(3)]
    if kind == "ft":
        return "/ft", received, wrench(stamp, three, three, draw(st.sampled_from(["", "tool", "\n"])))
    header = joint_state(stamp, (), ()).header
    from bag_files import make  # noqa: PLC0415

    return "/hand", received, make("geometry_msgs/PoseStamped", header, pose(three))


def list_targets(folder: Path) -> Sequence[Target]:
    """Return all targets; `folder` receives the bags that are mutated."""
    bags = write_bags(folder)
    contents = {suffix: texts([content], BINARY_MUTATIONS) for suffix, (_, content) in bags.items()}
    folders = st.one_of(
        *(
            st.tuples(st.just(suffix), texts([metadata]), st.just(content) | contents[suffix])
            for suffix, (metadata, content) in bags.items()
        )
    )
    return (
        Target("CSV", texts(TABLES), fuzz_table, TABLES, 1.2),
        Target("NPZ", texts(ARCHIVES, BINARY_MUTATIONS) | PLAN.map(_write_archive), fuzz_archive, ARCHIVES),
        Target("cameras", texts(CAMERAS), fuzz_camera, CAMERAS, 1.2),
        Target("MCAP", contents[".mcap"], create_bag_reader(".mcap"), [bags[".mcap"][1]]),
        Target("SQLite bag", contents[".db3"], create_bag_reader(".db3"), [bags[".db3"][1]], 0.7),
        Target("bag folder", folders, fuzz_bag_folder, share=0.5),
        Target("bag messages", st.lists(_bag_message(), min_size=1, max_size=6), fuzz_bag_messages, share=0.5),
    )
