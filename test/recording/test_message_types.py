import json
import os
from pathlib import Path

import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.recording.bag_writer import BagWriter, distribution_types, learn

RECORDED = [
    "sensor_msgs/msg/JointState",
    "std_msgs/msg/Float64MultiArray",
    "std_msgs/msg/String",
    "geometry_msgs/msg/WrenchStamped",
    "geometry_msgs/msg/PoseStamped",
    "geometry_msgs/msg/PoseArray",
]


@pytest.mark.parametrize("msgtype", RECORDED)
def test_types_have_the_hash_of_the_installed_distribution(msgtype):
    package, _, name = msgtype.split("/")
    installed = [
        Path(prefix) / "share" / package / "msg" / f"{name}.json"
        for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    ]
    files = [file for file in installed if file.is_file()]
    if not files:
        pytest.skip(f"{package} is not installed (AMENT_PREFIX_PATH)")
    hashes = {entry["type_name"]: entry["hash_string"] for entry in json.loads(files[0].read_text())["type_hashes"]}
    assert distribution_types().hash_rihs01(msgtype) == hashes[msgtype]


def test_unknown_distribution_takes_the_newest(monkeypatch):
    monkeypatch.setenv("ROS_DISTRO", "zeppelin")
    assert "sensor_msgs/msg/JointState" in distribution_types().fielddefs


@pytest.fixture
def driver_package(tmp_path, monkeypatch):
    messages = tmp_path / "prefix" / "share" / "driver_msgs" / "msg"
    messages.mkdir(parents=True)
    (messages / "Arm.msg").write_text("std_msgs/Header header\nMotor[] motors\ngeometry_msgs/Point[2] corners\n")
    (messages / "Motor.msg").write_text("float32 current\nstring<=8 mode\nuint8 OFF=0\n")
    (messages / "Broken.msg").write_text("float64 [ \n")
    (messages / "Orphan.msg").write_text("nowhere_msgs/Thing thing\n")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/none{os.pathsep}{tmp_path / 'prefix'}")


@pytest.mark.usefixtures("driver_package")
def test_installed_types_are_learnt_with_all_they_are_made_of(tmp_path):
    with BagWriter(tmp_path / "bags") as bag:
        bag.add_topic("/arm", "driver_msgs/msg/Arm")
    content = (bag.path / f"{bag.path.name}.mcap").read_bytes()
    for part in (
        b"driver_msgs/Motor[] motors",
        b"MSG: driver_msgs/Motor\n",
        b"string<=8 mode",
        b"MSG: geometry_msgs/Point\n",
    ):
        assert part in content


@pytest.mark.usefixtures("driver_package")
@pytest.mark.parametrize(
    ("msgtype", "match"),
    [
        (
            "driver_msgs/msg/None",
            r"driver_msgs/msg/None is unknown: no driver_msgs/msg/None\.msg under AMENT_PREFIX_PATH",
        ),
        ("driver_msgs/msg/Orphan", "nowhere_msgs/msg/Thing is unknown"),
        ("driver_msgs/msg/Broken", "message type driver_msgs/msg/Broken: its definition cannot be read"),
    ],
)
def test_types_that_cannot_be_learnt(msgtype, match):
    with pytest.raises(RecordingError, match=match):
        learn(distribution_types(), msgtype)
