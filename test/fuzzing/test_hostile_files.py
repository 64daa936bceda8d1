"""Files that nobody gives by mistake, and some that happen: every reader answers with one line, at once."""

import io
import os
import pickle
import resource
import time
import zipfile
from contextlib import contextmanager

import numpy as np
import planar_arm
import pytest
from bag_files import START, joint_state, write_bag
from fuzzing import arms
from fuzzing.yaml_text import yaml_text

from dynid_ros.collision import read_obstacles
from dynid_ros.collision.shapes import find_mesh
from dynid_ros.control import load_gravity_torque
from dynid_ros.errors import (
    CollisionError,
    ControlError,
    DynidError,
    IdentifiedFileError,
    ModelError,
    RecordingError,
    TrajectoryError,
)
from dynid_ros.excitation.joint_by_joint import read_motion
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording, read_mocap
from dynid_ros.trajectories import Trajectory

READERS = {
    "arm.urdf": (RobotModel.from_urdf, ModelError),
    "identified.yaml": (load_identified, IdentifiedFileError),
    "obstacles.yaml": (read_obstacles, CollisionError),
    "trajectory.yaml": (Trajectory.read, TrajectoryError),
    "motion.yaml": (lambda path: read_motion(path, 1), TrajectoryError),
    "run.csv": (Recording.read, RecordingError),
    "run.npz": (Recording.read, RecordingError),
    "run.mcap": (Recording.read, RecordingError),
    "run.db3": (Recording.read, RecordingError),
    "take.csv": (read_mocap, RecordingError),
}
EVERY = pytest.mark.parametrize("name", READERS)


@contextmanager
def refused(name, match=r"."):
    """One clear line, little time and little memory."""
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(READERS[name][1], match=match) as caught:
        yield
    line = str(caught.value)
    assert line.isprintable()
    assert len(line.split()) > 4
    assert time.process_time() - start < 5.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def read(name, path):
    return READERS[name][0](path)


@EVERY
def test_a_pipe_that_nobody_writes_to(name, tmp_path, monkeypatch):
    monkeypatch.setattr("dynid_ros.files.bounded.PIPE_TIMEOUT_S", 0.1)
    os.mkfifo(tmp_path / name)
    with refused(name, "pipe"):
        read(name, tmp_path / name)


@EVERY
def test_devices_folders_and_links_to_themselves(name, tmp_path):
    path = tmp_path / name
    path.symlink_to("/dev/zero")
    with refused(name, "it is a device"):
        read(name, path)
    path.unlink()
    path.symlink_to(path)
    with refused(name, r"symbolic links|does not exist"):
        read(name, path)
    path.unlink()
    path.mkdir()
    with refused(name, r"it is a folder|holds no bag"):
        read(name, path)


@EVERY
@pytest.mark.parametrize("odd", ["\0", "\n", "\x1b[2J", "\udc80", "a" * 300])
def test_a_name_that_no_file_has(name, odd, tmp_path):
    with refused(name):
        read(name, tmp_path / f"{odd}{name}")


@EVERY
def test_an_odd_name_is_told_in_one_line(name, tmp_path):
    path = tmp_path / f"two\nlines \x1b[31m{name}"
    path.write_bytes(b"what is this")
    with refused(name):
        read(name, path)


@EVERY
@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\0" * 1000, b"\xff" * 1000, b"<", b"a" * 100_000, b"[" * 5000, b"PK\x03\x04 broken"]
)
def test_nothing_sensible(name, content, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    if name == "obstacles.yaml" and content in (b"", b"\n"):
        assert read(name, path) == ()
        return
    with refused(name):
        read(name, path)


@pytest.mark.parametrize(
    "name", ["arm.urdf", "identified.yaml", "obstacles.yaml", "trajectory.yaml", "motion.yaml", "take.csv"]
)
def test_a_file_of_terabytes(name, tmp_path):
    with (tmp_path / name).open("wb") as file:
        file.truncate(10**12)  # takes no space
    with refused(name, r"it has more than \d+ MB, is it the right file"):
        read(name, tmp_path / name)


# URDF

BILLION = "".join(f'<!ENTITY a{i} "' + 10 * f"&a{i - 1};" + '">' for i in range(1, 10))
LONG = "x" * 50_000
BOMBS = {
    "billion laughs": f'<!DOCTYPE r [<!ENTITY a0 "ha">{BILLION}]><robot name="&a9;"/>',
    "quadratic": f'<!DOCTYPE r [<!ENTITY a "{LONG}">]><robot name="' + 50_000 * "&a;" + '"/>',
    "file": '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="a">&a;</robot>',
    "net": '<!DOCTYPE r SYSTEM "http://localhost:1/a.dtd"><robot name="a"/>',
    "parameter": '<!DOCTYPE r [<!ENTITY % a SYSTEM "file:///dev/zero"> %a;]><robot name="a"/>',
}


@pytest.mark.parametrize("kind", BOMBS)
def test_entities(kind, tmp_path):
    path = tmp_path / "arm.urdf"
    for declaration in ("", '<?xml version="1.0"?>\n<!-- arm -->\n'):
        path.write_text(declaration + BOMBS[kind])
        with refused("arm.urdf", "document type declaration .*; remove it"):
            RobotModel.from_urdf(path)


def test_deep_nesting():
    links = 20_000 * '<link name="l">' + 20_000 * "</link>"
    for text in ("<a>" * 100_000, f"<robot name='a'>{links}</robot>"):
        with refused("arm.urdf"):
            RobotModel.from_urdf(text)


def chain(n, kind):
    links = "".join(f'<link name="l{i}"/>' for i in range(n + 1))
    joints = "".join(
        f'<joint name="j{i}" type="{kind}"><parent link="l{i}"/><child link="l{i + 1}"/></joint>' for i in range(n)
    )
    return f'<robot name="long">{links}{joints}</robot>'


def test_a_chain_longer_than_the_stack():
    with refused("arm.urdf", "no moving joint"):
        RobotModel.from_urdf(chain(1050, "fixed"))
    assert RobotModel.from_urdf(chain(1050, "continuous")).n_joints == 1050


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('mass value="3.0"', 'mass value="1e30"', r"link 'link_2': mass is 1e\+30; expected finite numbers up to"),
        ('xyz="0 0 0.3"', 'xyz="0 0 1e200"', r"joint 'joint_1': xyz is 0.0 0.0 1e\+200"),
        ('axis xyz="0 0 1"', 'axis xyz="0 0 1e-15"', "joint 'joint_1': axis is 0 0 1e-15; give the direction"),
    ],
)
def test_numbers_that_no_arm_has(old, new, match):
    with refused("arm.urdf", match):
        RobotModel.from_urdf(planar_arm.urdf().replace(old, new, 1))


@pytest.mark.parametrize(
    "name",
    [
        "package://../../etc/passwd",
        "package://arm/../../../../../../etc",
        "package://",
        "file://",
        "../nowhere.stl",
        "a\0b",
    ],
)
def test_paths_of_meshes(name, tmp_path):
    (tmp_path / "arm").mkdir()
    with pytest.raises(CollisionError, match=r"is not found|cannot be read"):
        find_mesh(name, [tmp_path / "arm"])


# YAML

LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
YAMLS = ["identified.yaml", "obstacles.yaml", "trajectory.yaml"]


@pytest.mark.parametrize("name", YAMLS)
@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['touch {}']",
        "a: !!python/object/new:os.system ['touch {}']",
        "a: !!python/name:os.system",
        f"{LAUGHS}format: *a11",
        f"{LAUGHS}robot: {{joints: *a11}}\nformat: dynid/1",
        "a: &a [*a]\nformat: *a",
        "format: " + "9" * 5000,
        "format: dynid/1\nformat: dynid/1",
        "date: 2020-13-45",
    ],
    ids=["apply", "new", "name", "laughs", "joints that laugh", "itself", "digits", "twice", "no date"],
)
def test_yaml_that_does_more_than_say(name, text, tmp_path):
    path, witness = tmp_path / name, tmp_path / "witness"
    path.write_text(text.replace("{}", str(witness)))
    with refused(name):
        read(name, path)
    assert not witness.exists()


# Tables


def test_a_million_columns(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(",".join(["t", *(f"q{i}" for i in range(1_000_000))]) + "\n0\n")
    with refused("run.csv", "does not end within 1000000 characters"):
        Recording.read(path)
    path.write_text(",".join(["t", *(f"q{i}" for i in range(50_000))]) + "\n0\n")
    with refused("run.csv", "names 50001 columns; keep at most 2000"):
        Recording.read(path)


def test_a_line_without_end(tmp_path):
    path = tmp_path / "run.csv"
    for head in ("", "t,q1\n", "t,q1\n0,1\n"):
        with path.open("wb") as file:
            file.write(head.encode())
            file.truncate(10**9)  # takes no space
        with refused("run.csv", "does not end within"):
            Recording.read(path, ["a"])


class Mine:
    """Pickled code."""

    def __reduce__(self):
        return os.mkdir, ("witness",)


def test_pickles(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.npz"
    np.savez(path, time=np.arange(3.0), position=np.array([Mine()] * 3, dtype=object))
    with refused("run.npz", "Object arrays cannot be loaded"):
        Recording.read(path)
    path.write_bytes(pickle.dumps(Mine()))
    with refused("run.npz", "not a zip file"):
        Recording.read(path)
    assert not (tmp_path / "witness").exists()


def npy(shape, content=b"", kind="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def archive(path, compression=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                for part in content:
                    member.write(part)
    return path


def test_arrays_larger_than_their_file(tmp_path):
    path = archive(tmp_path / "run.npz", time=[npy((10**12,))], position=[npy((10**12, 7))])
    with refused("run.npz", r"time.npy is shorter than an array of shape \(1000000000000,\)"):
        Recording.read(path)


def test_a_zip_bomb(tmp_path):
    zeros = [npy((13_750_000,)), *[bytes(10_000_000)] * 11]
    path = archive(tmp_path / "run.npz", zipfile.ZIP_DEFLATED, time=zeros, position=[npy((1, 1), bytes(8))])
    assert path.stat().st_size < 1_000_000
    with refused("run.npz", "bytes hold 110 MB"):
        Recording.read(path)


# Bags


@pytest.fixture
def bag(tmp_path):
    messages = (
        ("/joint_states", START + i * 10**7, joint_state(START + i * 10**7, ["a"], [0.1 * i])) for i in range(20)
    )
    return write_bag(tmp_path / "bag", messages)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: f"{LAUGHS}{text}".replace("storage_identifier: mcap", "storage_identifier: *a11"),
        lambda text: text.replace("bag.mcap", "../../../../dev/zero"),
        lambda text: "[" * 50_000,
        lambda text: text + "x" * 11_000_000,
        lambda text: "!!python/object/apply:os.system [exit]",
    ],
    ids=["laughs", "path", "deep", "huge", "tag"],
)
def test_metadata(bag, change):
    (metadata := bag / "metadata.yaml").write_text(change((bag / "metadata.yaml").read_text()))
    start = time.process_time()
    assert Recording.read(bag).n_samples == 20  # from the file itself
    assert time.process_time() - start < 5
    metadata.unlink()
    os.mkfifo(metadata)
    assert Recording.read(bag).n_samples == 20


def test_a_pipe_among_the_files_of_a_bag(bag):
    os.mkfifo(bag / "more.db3")
    with refused("run.db3", r"cannot read .*more.db3 \(it is a pipe"):
        Recording.read(bag)


def test_topics_without_names(bag):
    metadata = bag / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("name: /joint_states", "name: [1]"))
    with refused("run.mcap", r"a topic is named \[1\] .*mend metadata.yaml, or remove it"):
        Recording.read(bag)


def test_every_error_is_one_line():
    error = DynidError("link 'a\nb\x1b[2J\ud800' has no mass; " + "x" * 5000 + " give one")
    assert str(error).isprintable()
    assert str(error).startswith("link 'a b\\x1b[2J\\ud800' has no mass")
    assert str(error).endswith("give one")
    assert len(str(error)) < 1600


# Found by the fuzzer


@pytest.mark.parametrize(
    ("keys", "value", "match"),
    [
        (["gravity", "joint_3", "n_x"], 1e300, r"n_x is 1e\+300"),
        (["robot", "gravity"], [0.0, 0.0, float("nan")], "gravity .* in the base frame"),
        (["format"], None, "format is None, expected dynid/1 or dynid/2"),
        (["load", "mass"], float("nan"), "its mass is nan kg"),
    ],
)
def test_models_that_no_arm_has(keys, value, match, tmp_path):
    document = section = arms.identified()
    for key in keys[:-1]:
        section = section[key]
    section[keys[-1]] = value
    path = tmp_path / "identified.yaml"
    path.write_bytes(yaml_text(document))
    with refused("identified.yaml", match):
        load_gravity_torque(path, planar_arm.urdf())


def test_springs_softer_than_anything_end_in_a_fault_not_in_a_crash(tmp_path):
    document = arms.identified()
    document["flexible_joints"]["joint_2"] |= {"stiffness": 1e-300, "cubic": 0.0}
    path = tmp_path / "identified.yaml"
    path.write_bytes(yaml_text(document))
    _, gravity = load_gravity_torque(path, planar_arm.urdf())
    with pytest.raises(ControlError, match="find no rest on their springs"):
        gravity([0.1, 0.2, 0.3])


def test_an_infinite_quaternion_was_not_seen(tmp_path):
    path = tmp_path / "take.csv"
    names = ",".join(f"a_{axis}" for axis in ("x", "y", "z", "qx", "qy", "qz", "qw"))
    path.write_text(f"t,{names}\n0,1,2,3,inf,0,0,1\n1,1,2,3,0,0,0,1\n")
    assert np.isfinite(read_mocap(path)["a"].quaternion).all(axis=1).tolist() == [False, True]
