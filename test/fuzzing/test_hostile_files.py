"""Read malicious and damaged files: each reader raises one clear line, quickly and with little memory."""

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
EACH_READER = pytest.mark.parametrize("name", READERS)


@contextmanager
def assert_refused(name, match=r"."):
    """Assert that the reader raises one clear line within limits of time and memory."""
    start_time = time.process_time()
    start_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(READERS[name][1], match=match) as caught:
        yield
    line = str(caught.value)
    assert line.isprintable()
    assert len(line.split()) > 4
    assert time.process_time() - start_time < 5.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start_memory < 200_000


def read_file(name, path):
    """Return the content as the reader for this file name returns it."""
    return READERS[name][0](path)


@EACH_READER
def test_refuses_pipes_without_a_writer(name, tmp_path, monkeypatch):
    monkeypatch.setattr("dynid_ros.files.bounded.PIPE_TIMEOUT_S", 0.1)
    os.mkfifo(tmp_path / name)
    with assert_refused(name, "pipe"):
        read_file(name, tmp_path / name)


@EACH_READER
def test_refuses_devices_folders_and_circular_links(name, tmp_path):
    path = tmp_path / name
    path.symlink_to("/dev/zero")
    with assert_refused(name, "it is a device"):
        read_file(name, path)
    path.unlink()
    path.symlink_to(path)
    with assert_refused(name, r"symbolic links|does not exist"):
        read_file(name, path)
    path.unlink()
    path.mkdir()
    with assert_refused(name, r"it is a folder|holds no bag"):
        read_file(name, path)


@EACH_READER
@pytest.mark.parametrize("odd", ["\0", "\n", "\x1b[2J", "\udc80", "a" * 300])
def test_refuses_impossible_file_names(name, odd, tmp_path):
    with assert_refused(name):
        read_file(name, tmp_path / f"{odd}{name}")


@EACH_READER
def test_prints_odd_file_names_in_one_line(name, tmp_path):
    path = tmp_path / f"two\nlines \x1b[31m{name}"
    path.write_bytes(b"what is this")
    with assert_refused(name):
        read_file(name, path)


@EACH_READER
@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\0" * 1000, b"\xff" * 1000, b"<", b"a" * 100_000, b"[" * 5000, b"PK\x03\x04 broken"]
)
def test_refuses_meaningless_content(name, content, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    if name == "obstacles.yaml" and content in (b"", b"\n"):
        assert read_file(name, path) == ()
        return
    with assert_refused(name):
        read_file(name, path)


@pytest.mark.parametrize(
    "name", ["arm.urdf", "identified.yaml", "obstacles.yaml", "trajectory.yaml", "motion.yaml", "take.csv"]
)
def test_refuses_files_of_terabytes(name, tmp_path):
    with (tmp_path / name).open("wb") as file:
        file.truncate(10**12)  # takes no space
    with assert_refused(name, r"it has more than \d+ MB, is it the right file"):
        read_file(name, tmp_path / name)


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
def test_refuses_xml_entities(kind, tmp_path):
    path = tmp_path / "arm.urdf"
    for declaration in ("", '<?xml version="1.0"?>\n<!-- arm -->\n'):
        path.write_text(declaration + BOMBS[kind])
        with assert_refused("arm.urdf", "document type declaration .*; remove it"):
            RobotModel.from_urdf(path)


def test_refuses_deeply_nested_xml():
    links = 20_000 * '<link name="l">' + 20_000 * "</link>"
    for text in ("<a>" * 100_000, f"<robot name='a'>{links}</robot>"):
        with assert_refused("arm.urdf"):
            RobotModel.from_urdf(text)


def write_chain(n, kind):
    """Return the URDF of a chain with `n` joints of one kind."""
    links = "".join(f'<link name="l{i}"/>' for i in range(n + 1))
    joints = "".join(
        f'<joint name="j{i}" type="{kind}"><parent link="l{i}"/><child link="l{i + 1}"/></joint>' for i in range(n)
    )
    return f'<robot name="long">{links}{joints}</robot>'


def test_reads_chains_longer_than_the_stack():
    with assert_refused("arm.urdf", "no moving joint"):
        RobotModel.from_urdf(write_chain(1050, "fixed"))
    assert RobotModel.from_urdf(write_chain(1050, "continuous")).n_joints == 1050


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('mass value="3.0"', 'mass value="1e30"', r"link 'link_2': mass is 1e\+30; expected finite numbers up to"),
        ('xyz="0 0 0.3"', 'xyz="0 0 1e200"', r"joint 'joint_1': xyz is 0.0 0.0 1e\+200"),
        ('axis xyz="0 0 1"', 'axis xyz="0 0 1e-15"', "joint 'joint_1': axis is 0 0 1e-15; give the direction"),
    ],
)
def test_refuses_implausible_numbers_in_urdf(old, new, match):
    with assert_refused("arm.urdf", match):
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
def test_refuses_mesh_paths_outside_the_package(name, tmp_path):
    (tmp_path / "arm").mkdir()
    with pytest.raises(CollisionError, match=r"is not found|cannot be read"):
        find_mesh(name, [tmp_path / "arm"])


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
def test_refuses_yaml_that_runs_code_or_expands(name, text, tmp_path):
    path = tmp_path / name
    witness = tmp_path / "witness"
    path.write_text(text.replace("{}", str(witness)))
    with assert_refused(name):
        read_file(name, path)
    assert not witness.exists()


def test_refuses_tables_with_a_million_columns(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(",".join(["t", *(f"q{i}" for i in range(1_000_000))]) + "\n0\n")
    with assert_refused("run.csv", "does not end within 1000000 characters"):
        Recording.read(path)
    path.write_text(",".join(["t", *(f"q{i}" for i in range(50_000))]) + "\n0\n")
    with assert_refused("run.csv", "names 50001 columns; keep at most 2000"):
        Recording.read(path)


def test_refuses_tables_with_an_endless_line(tmp_path):
    path = tmp_path / "run.csv"
    for head in ("", "t,q1\n", "t,q1\n0,1\n"):
        with path.open("wb") as file:
            file.write(head.encode())
            file.truncate(10**9)  # takes no space
        with assert_refused("run.csv", "does not end within"):
            Recording.read(path, ["a"])


class PickledCode:
    """Object whose unpickling creates the folder `witness`."""

    def __reduce__(self):
        return os.mkdir, ("witness",)


def test_refuses_pickles_without_loading_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.npz"
    np.savez(path, time=np.arange(3.0), position=np.array([PickledCode()] * 3, dtype=object))
    with assert_refused("run.npz", "Object arrays cannot be loaded"):
        Recording.read(path)
    path.write_bytes(pickle.dumps(PickledCode()))
    with assert_refused("run.npz", "not a zip file"):
        Recording.read(path)
    assert not (tmp_path / "witness").exists()


def write_npy_header(shape, content=b"", kind="<f8"):
    """Return the header of an NPY file of this shape, followed by the content."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def write_archive(path, compression=zipfile.ZIP_STORED, **members):
    """Write an NPZ archive from parts of its members and return the path."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                for part in content:
                    member.write(part)
    return path


def test_refuses_arrays_larger_than_their_file(tmp_path):
    path = write_archive(
        tmp_path / "run.npz", time=[write_npy_header((10**12,))], position=[write_npy_header((10**12, 7))]
    )
    with assert_refused("run.npz", r"time.npy is shorter than an array of shape \(1000000000000,\)"):
        Recording.read(path)


def test_refuses_zip_bombs(tmp_path):
    zeros = [write_npy_header((13_750_000,)), *[bytes(10_000_000)] * 11]
    path = write_archive(
        tmp_path / "run.npz", zipfile.ZIP_DEFLATED, time=zeros, position=[write_npy_header((1, 1), bytes(8))]
    )
    assert path.stat().st_size < 1_000_000
    with assert_refused("run.npz", "bytes hold 110 MB"):
        Recording.read(path)


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
def test_reads_bags_despite_hostile_metadata(bag, change):
    metadata = bag / "metadata.yaml"
    metadata.write_text(change(metadata.read_text()))
    start = time.process_time()
    assert Recording.read(bag).n_samples == 20  # from the bag file itself
    assert time.process_time() - start < 5
    metadata.unlink()
    os.mkfifo(metadata)
    assert Recording.read(bag).n_samples == 20


def test_refuses_bags_that_contain_a_pipe(bag):
    os.mkfifo(bag / "more.db3")
    with assert_refused("run.db3", r"cannot read .*more.db3 \(it is a pipe"):
        Recording.read(bag)


def test_refuses_topics_without_names(bag):
    metadata = bag / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("name: /joint_states", "name: [1]"))
    with assert_refused("run.mcap", r"a topic is named \[1\]"):
        Recording.read(bag)


def test_errors_are_one_printable_line():
    error = DynidError("link 'a\nb\x1b[2J\ud800' has no mass; " + "x" * 5000 + " give one")
    assert str(error).isprintable()
    assert str(error).startswith("link 'a b\\x1b[2J\\ud800' has no mass")
    assert str(error).endswith("give one")
    assert len(str(error)) < 1600


@pytest.mark.parametrize(
    ("keys", "value", "match"),
    [
        (["gravity", "joint_3", "n_x"], 1e300, r"n_x is 1e\+300"),
        (["robot", "gravity"], [0.0, 0.0, float("nan")], "gravity .* in the base frame"),
        (["format"], None, "format is None, expected dynid/1 or dynid/2"),
        (["load", "mass"], float("nan"), "its mass is nan kg"),
    ],
)
def test_refuses_implausible_numbers_in_identified_files(keys, value, match, tmp_path):
    document = arms.create_identified()
    section = document
    for key in keys[:-1]:
        section = section[key]
    section[keys[-1]] = value
    path = tmp_path / "identified.yaml"
    path.write_bytes(yaml_text(document))
    with assert_refused("identified.yaml", match):
        load_gravity_torque(path, planar_arm.urdf())


def test_extremely_soft_springs_raise_a_control_error(tmp_path):
    document = arms.create_identified()
    document["flexible_joints"]["joint_2"] |= {"stiffness": 1e-300, "cubic": 0.0}
    path = tmp_path / "identified.yaml"
    path.write_bytes(yaml_text(document))
    _, gravity = load_gravity_torque(path, planar_arm.urdf())
    with pytest.raises(ControlError, match="find no rest on their springs"):
        gravity([0.1, 0.2, 0.3])


def test_reads_infinite_quaternions_as_missing(tmp_path):
    path = tmp_path / "take.csv"
    names = ",".join(f"a_{axis}" for axis in ("x", "y", "z", "qx", "qy", "qz", "qw"))
    path.write_text(f"t,{names}\n0,1,2,3,inf,0,0,1\n1,1,2,3,0,0,0,1\n")
    assert np.isfinite(read_mocap(path)["a"].quaternion).all(axis=1).tolist() == [False, True]
