"""Readers of motion-capture exports in the formats of their programs, with synthetic numbers."""

import sys

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording, add_poses, read_mocap
from dynid_ros.signals import align_clocks

POINTS = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 3, 3))
"""Positions of three markers in four frames, m."""


def write_file(tmp_path, *lines, name="take.csv", encoding="utf-8", end="\n"):
    path = tmp_path / name
    path.write_bytes((end.join(lines) + end).encode(encoding))
    return path


def motive(units="Meters", rotation="Quaternion", rows=None):
    kinds = ["Rigid Body"] * 8 + ["Rigid Body Marker"] * 4 + ["Marker"] * 3
    names = ["link 1"] * 8 + ["link 1:Marker1"] * 4 + ["link 1:Marker1"] * 3
    contents = ["Rotation"] * 4 + ["Position"] * 3 + ["Mean Marker Error"] + ["Position"] * 3 + ["Marker Quality"]
    return [
        "Format Version,1.23,Take Name,Take 1,Capture Frame Rate,240.000000,Export Frame Rate,240.000000,"
        f"Rotation Type,{rotation},Length Units,{units},Coordinate Space,Global",
        "",
        ",".join(["", "Type", *kinds]),
        ",".join(["", "Name", *names]),
        ",".join(["", "ID", *['"CF51"'] * 15]),
        ",".join(["", "", *contents, *["Position"] * 3]),
        "Frame,Time (Seconds),X,Y,Z,W,X,Y,Z,,X,Y,Z,,X,Y,Z",
        *(
            rows
            or [
                "0,0.000000,0.1,0.2,0.3,0.9,1.0,2.0,3.0,0.0001,9,9,9,1,0.5,0.6,0.7",
                "1,0.004167,,,,,,,,,9,9,9,0,,,",
                "2,0.008333,0.1,0.2,0.3,0.9,1.1,2.1,3.1,0.0001,9,9,9,1,0.51,0.61,",
            ]
        ),
    ]


@pytest.mark.parametrize(("units", "metres"), [("Meters", 1.0), ("Millimeters", 1e-3), ("Centimeters", 1e-2)])
def test_reads_motive(tmp_path, units, metres):
    # Motive writes expected marker positions under the same name; they are ignored.
    poses = read_mocap(write_file(tmp_path, *motive(units)))
    assert list(poses) == ["link 1", "link 1:Marker1"]
    body, marker = poses.values()
    np.testing.assert_allclose(body.time, [0, 0.004167, 0.008333])
    np.testing.assert_allclose(body.position, metres * np.array([[1, 2, 3], [np.nan] * 3, [1.1, 2.1, 3.1]]))
    np.testing.assert_allclose(body.quaternion[[0, 2]], [[0.1, 0.2, 0.3, 0.9]] * 2)
    assert np.isnan(body.quaternion[1]).all()
    np.testing.assert_allclose(marker.position[0], metres * np.array([0.5, 0.6, 0.7]))
    assert np.isnan(marker.position[1:]).all()  # incomplete positions are missing
    assert np.isnan(marker.quaternion).all()


def test_reads_motive_with_angles_and_parents(tmp_path):
    lines = motive(rotation="XYZ")
    lines.insert(5, ",".join(["", "Parent", *[""] * 15]))
    body = read_mocap(write_file(tmp_path, *lines, end="\r\n"))["link 1"]
    np.testing.assert_allclose(body.position[0], [1, 2, 3])
    assert np.isnan(body.quaternion).all()


VICON = [
    "Devices",
    "1000",
    ",,Force",
    "Frame,Sub Frame,Fx",
    ",,N",
    "1,0,0.5",
    "",
    "Trajectories",
    "250",
    ",,Arm:elbow,,,Arm:hand,,",
    "Frame,Sub Frame,X,Y,Z,X,Y,Z",
    ",,mm,mm,mm,mm,mm,mm",
    "101,0,1,2,3,4,5,6",
    "102,0,1.5,2.5,3.5,,,",
    "",
    "Model Outputs",
    "250",
]


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_reads_vicon_trajectories(tmp_path, separator):
    poses = read_mocap(write_file(tmp_path, *(line.replace(",", separator) for line in VICON)))
    assert list(poses) == ["Arm:elbow", "Arm:hand"]
    np.testing.assert_allclose(poses["Arm:elbow"].time, [0.4, 0.404])
    np.testing.assert_allclose(poses["Arm:elbow"].position, [[0.001, 0.002, 0.003], [0.0015, 0.0025, 0.0035]])
    np.testing.assert_allclose(poses["Arm:hand"].position, [[0.004, 0.005, 0.006], [np.nan] * 3])
    slower = read_mocap(write_file(tmp_path, *VICON), rate=100)
    np.testing.assert_allclose(slower["Arm:hand"].time, [1.0, 1.01])


def test_reads_vicon_with_decimal_commas(tmp_path):
    lines = [line.replace(",", ";").replace(".", ",") for line in VICON]
    np.testing.assert_allclose(
        read_mocap(write_file(tmp_path, *lines))["Arm:elbow"].position[1], [0.0015, 0.0025, 0.0035]
    )


def test_reads_vicon_objects(tmp_path):
    lines = ["Objects", "100", ",,Tool,,,,,,,Base", "Frame,Sub Frame,RX,RY,RZ,RW,TX,TY,TZ,RX,RY,RZ,TX,TY,TZ"]
    lines += [",,,,,,mm,mm,mm,rad,rad,rad,mm,mm,mm", "1,0,0,0,0.6,0.8,10,20,30,0,0,1,40,50,60"]
    poses = read_mocap(write_file(tmp_path, *lines))
    np.testing.assert_allclose(poses["Tool"].position, [[0.01, 0.02, 0.03]])
    np.testing.assert_allclose(poses["Tool"].quaternion, [[0, 0, 0.6, 0.8]])
    np.testing.assert_allclose(poses["Base"].position, [[0.04, 0.05, 0.06]])
    assert np.isnan(poses["Base"].quaternion).all()


def qualisys(*rows, names="Wrist\tHip", frequency="200", columns=()):
    header = ["NO_OF_FRAMES\t2", "NO_OF_CAMERAS\t13", "NO_OF_MARKERS\t2", f"FREQUENCY\t{frequency}", "NO_OF_ANALOG\t0"]
    header += ["DESCRIPTION\t--", "TIME_STAMP\t2024-04-15, 10:39:38.777\t406646.66", "DATA_INCLUDED\t3D"]
    header += ["EVENT\tstart\t1\t0.00", f"MARKER_NAMES\t{names}", "TRAJECTORY_TYPES\tMeasured\tMeasured"]
    return [*header, *columns, *rows]


@pytest.mark.parametrize(
    "lines",
    [
        qualisys("-473.5\t191.9\t613.3\t1\t2\t3", "-473.6\t192.0\t613.4\t0.000\t0.000\t0.000"),
        qualisys("-473.5\t191.9\t613.3\t1\t2\t3\t", "-473.6\t192.0\t613.4\t\t\t\t"),
        qualisys("1\t0.00000\t-473.5\t191.9\t613.3\t1\t2\t3", "2\t0.00500\t-473.6\t192.0\t613.4\t0\t0\t0"),
        qualisys(
            "1\t0.00000\t-473.5\t191.9\t613.3\t1\t2\t3\t",
            "2\t0.00500\t-473.6\t192.0\t613.4\t\t\t\t",
            columns=["Frame\tTime\tWrist X\tWrist Y\tWrist Z\tHip X\tHip Y\tHip Z"],
        ),
        qualisys(
            "-473.5\t191.9\t613.3\t1\t2\t3",
            "-473.6\t192.0\t613.4\t\t\t",
            columns=["7 X\t7 Y\t7 Z\tHip X\tHip Y\tHip Z"],
        ),
    ],
    ids=["markers alone", "trailing tabs, empty cells", "frame and time", "column names", "markers and their names"],
)
def test_reads_qualisys(tmp_path, lines):
    poses = read_mocap(write_file(tmp_path, *lines, name="take.tsv"))
    assert list(poses) == ["Wrist", "Hip"]
    np.testing.assert_allclose(poses["Wrist"].time, [0, 0.005])
    np.testing.assert_allclose(poses["Wrist"].position, [[-0.4735, 0.1919, 0.6133], [-0.4736, 0.192, 0.6134]])
    np.testing.assert_allclose(poses["Hip"].position, [[0.001, 0.002, 0.003], [np.nan] * 3])


def test_reads_qualisys_with_an_external_timebase(tmp_path):
    path = write_file(tmp_path, *qualisys("1\t2\t3\t4\t5\t6", "1\t2\t3\t4\t5\t6", frequency="EXT"))
    with pytest.raises(RecordingError, match=r"take.csv, line 4: neither times nor a frequency; .* give the rate"):
        read_mocap(path)
    np.testing.assert_allclose(read_mocap(path, rate=50)["Hip"].time, [0, 0.02])
    assert read_mocap(path, unit="m", rate=50)["Hip"].position[0, 2] == 6


def trc(units="mm"):
    return [
        "PathFileType\t4\t(X/Y/Z)\ttake.trc",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"120\t120\t3\t2\t{units}\t120\t1\t3",
        "Frame#\tTime\tknee\t\t\tankle\t\t\t",
        "\t\tX1\tY1\tZ1\tX2\tY2\tZ2\t",
        "",
        "1\t0.000000\t1\t2\t3\t4\t5\t6\t",
        "2\t0.008333\t\t\t\t4\t5\t6\t",
        "3\t0.016667\t1\t2\t3\t0\t0\t0",
    ]


@pytest.mark.parametrize(("units", "metres"), [("mm", 1e-3), ("m", 1.0)])
def test_reads_trc(tmp_path, units, metres):
    poses = read_mocap(write_file(tmp_path, *trc(units), name="take.trc"))
    np.testing.assert_allclose(poses["knee"].time, [0, 0.008333, 0.016667])
    np.testing.assert_allclose(poses["knee"].position, metres * np.array([[1, 2, 3], [np.nan] * 3, [1, 2, 3]]))
    np.testing.assert_allclose(poses["ankle"].position, metres * np.array([[4, 5, 6], [4, 5, 6], [np.nan] * 3]))


def test_reads_plain_tables(tmp_path):
    poses = read_mocap(write_file(tmp_path, "t,x1,y1,z1,x2,y2,z2,note", "5,1,2,3,4,5,6,", "5.1,,,,4,nan,6,"))
    assert list(poses) == ["marker1", "marker2"]
    np.testing.assert_array_equal(poses["marker1"].time, [5, 5.1])
    np.testing.assert_array_equal(poses["marker1"].position, [[1, 2, 3], [np.nan] * 3])
    np.testing.assert_array_equal(poses["marker2"].position, [[4, 5, 6], [np.nan] * 3])
    head = "Time,hand_x,hand_y,hand_z,hand_qx,hand_qy,hand_qz,hand_qw"
    hand = read_mocap(write_file(tmp_path, head, "0,1000,0,0,0,0,0,1"), unit="mm")["hand"]
    np.testing.assert_array_equal(hand.position, [[1, 0, 0]])
    np.testing.assert_array_equal(hand.quaternion, [[0, 0, 0, 1]])


def test_reads_other_encodings(tmp_path):
    lines = ["t,Schulter rück_x,Schulter rück_y,Schulter rück_z", "0,1,2,3"]
    for encoding in ("utf-8-sig", "latin-1"):
        assert list(read_mocap(write_file(tmp_path, *lines, encoding=encoding))) == ["Schulter rück"]


BROKEN = {
    "cannot read": None,
    "is empty": [""],
    "is no text": ["\0\1"],
    "line 1: no file of Motive, Vicon": ["a,b,c", "1,2,3"],
    "line 1: unit of length 'Furlongs' is unknown": motive("Furlongs"),
    "line 1: no line 'Frame, Time": motive()[:3],
    "line 7: no samples follow": motive()[:7],
    "line 8: 'x' is not a number": motive(rows=["0,0,x"]),
    "line 8: 20 cells; expected 17": motive(rows=[",".join(["1"] * 20)]),
    "line 7: no track of a marker": [*motive()[:2], ",,Bone", ",,b", ",,1", ",,Position", "Frame,Time,X", "0,0,1"],
    "time repeats at sample 1": motive(rows=["0,0.5,1", "1,0.5,1"]),
    "line 9: 'fast' is no rate in Hz": [*VICON[:8], "fast", *VICON[9:]],
    "line 9: the file ends here; expected the line 'Frame": VICON[:9],
    "line 11: '1'; expected 'Frame'": [*VICON[:10], "1,0,1,2,3", *VICON[11:]],
    "line 11: 'Arm:elbow' has no columns X, Y, Z": [*VICON[:10], "Frame,Sub Frame,A,B,C,X,Y,Z", *VICON[11:]],
    "line 10: 0 names for 8 columns": [*VICON[:9], ",,,,,,,", *VICON[10:]],
    "line 10: 3 names for 8 columns": [*VICON[:9], f"{VICON[9]},Arm:tool", *VICON[10:]],
    "line 12: unit of length 'px' is unknown": [*VICON[:11], ",,px,px,px,mm,mm,mm", *VICON[12:]],
    "line 12: 5 columns for 2 markers; expected 6": qualisys("1\t2\t3\t4\t5"),
    "line 2: no line MARKER_NAMES": ["NO_OF_FRAMES\t2", "FREQUENCY\t100", "1\t2\t3"],
    "line 1: neither times nor a frequency": [
        row for row in qualisys("1\t2\t3\t4\t5\t6") if not row.startswith("FREQ")
    ],
    "line 10: tracks Hip come twice": qualisys("1\t2\t3\t4\t5\t6", names="Hip\tHip"),
    "line 4: 'Frame', 'Zeit'; expected 'Frame#', 'Time'": [*trc()[:3], "Frame\tZeit\tknee", *trc()[4:]],
    "line 5: 3 axes of 2 markers": [*trc()[:4], "\t\tX1\tY1\tZ1", *trc()[5:]],
    "line 1: no file of Motive, Vicon, Qualisys or TRC": ["t,force", "0,1"],
    "line 1: 'hand' has no column z": ["t,hand_x,hand_y", "0,1,2"],
}


@pytest.mark.parametrize("match", BROKEN)
def test_refuses_broken_files_with_their_line(tmp_path, match):
    path = tmp_path / "none.csv" if BROKEN[match] is None else write_file(tmp_path, *BROKEN[match])
    with pytest.raises(RecordingError, match=match.replace(".", r"\.")) as error:
        read_mocap(path)
    assert str(path) in str(error.value)


def test_refuses_wrong_units(tmp_path):
    with pytest.raises(RecordingError, match="line 1: the file is in Meters, not in mm; leave the unit out"):
        read_mocap(write_file(tmp_path, *motive()), unit="mm")
    with pytest.raises(RecordingError, match="unit of length 'inch' is unknown"):
        read_mocap(write_file(tmp_path, "t,x1,y1,z1", "0,1,2,3"), unit="inch")


def test_tracks_determine_the_clock_of_a_recording(tmp_path):
    """A marker at 0.3 m on a hinge is recorded with another clock; the offset is found from the file."""
    time = np.arange(0, 20, 0.002)
    angle = 0.6 * np.sin(time) + 0.2 * np.sin(2.3 * time)
    marker_time = time[1000:9000:2] + 0.00073
    marker_angle = 0.6 * np.sin(marker_time) + 0.2 * np.sin(2.3 * marker_time)
    marker = 300 * np.array([np.cos(marker_angle), np.sin(marker_angle)]).T
    rows = [f"{k + 1},0,{x:.4f},{y:.4f},0.5" for k, (x, y) in enumerate(marker)]
    head = ["Trajectories", "250", ",,Arm:hand", "Frame,Sub Frame,X,Y,Z", ",,mm,mm,mm"]
    poses = read_mocap(write_file(tmp_path, *head, *rows))
    blank = np.full((len(time), 1), np.nan)
    recording = Recording(("hinge",), time, angle[:, np.newaxis], blank, blank)
    joined = add_poses(recording, poses)
    track = joined.poses["Arm:hand"]
    clock = align_clocks(time, joined.position, track.time, np.arctan2(*track.position.T[1::-1])[:, np.newaxis])
    assert clock.offset + clock.middle == pytest.approx((marker_time[0] + marker_time[-1]) / 2, abs=1e-5)
    with pytest.raises(RecordingError, match="already has poses of Arm:hand"):
        add_poses(joined, poses)


@pytest.fixture
def take(tmp_path):
    c3d = pytest.importorskip("c3d")

    def write_take(unit="mm  ", rate=200.0, labels=("hand", "elbow", "knee_angles"), angles=""):
        writer = c3d.Writer(point_rate=rate, analog_rate=rate, point_units=unit, point_scale=-1.0)
        for frame, positions in enumerate(POINTS):
            points = np.zeros((3, 5), dtype=np.float32)
            points[:, :3] = positions * {"mm  ": 1000.0}.get(unit, 1.0)
            points[1, 3] = -1.0 if frame == 2 else 0.0
            writer.add_frames([(points, np.zeros((1, 1)))])
        writer.set_point_labels(list(labels))
        if angles:
            writer.get("POINT").add_str("ANGLES", "results", angles, len(angles), 1)
        writer.set_analog_labels(["none"])
        path = tmp_path / "take.c3d"
        with path.open("wb") as handle:
            writer.write(handle)
        return path

    return write_take


def test_reads_c3d_markers_without_model_results(take):
    tracks = read_mocap(take(angles="knee_angles"))
    assert list(tracks) == ["hand", "elbow"]
    np.testing.assert_allclose(tracks["hand"].position, POINTS[:, 0], atol=1e-6)
    np.testing.assert_allclose(tracks["elbow"].position[[0, 1, 3]], POINTS[[0, 1, 3], 1], atol=1e-6)
    assert np.isnan(tracks["elbow"].position[2]).all()
    assert np.isnan(tracks["hand"].quaternion).all()
    np.testing.assert_allclose(tracks["hand"].time, np.arange(4) / 200.0)
    np.testing.assert_allclose(read_mocap(take(), rate=100.0)["hand"].time, np.arange(4) / 100.0)
    np.testing.assert_allclose(read_mocap(take("m   "))["hand"].position, POINTS[:, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"), [({"unit": "inch"}, "inch"), ({"labels": ("a", "a", "b")}, "a come twice")]
)
def test_refuses_impossible_c3d_files(take, settings, message):
    with pytest.raises(RecordingError, match=rf"take\.c3d: .*{message}"):
        read_mocap(take(**settings))


@pytest.mark.parametrize("size", [0, 1, 600, 2100])
def test_refuses_truncated_or_missing_c3d_files(take, size):
    path = take()
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(RecordingError, match=r"take\.c3d: .*export it again"):
        read_mocap(path)
    with pytest.raises(RecordingError, match=r"cannot read .*No such file"):
        read_mocap(path.with_name("none.c3d"))


@pytest.mark.parametrize("processor", [0, 255])
def test_refuses_an_unknown_processor(take, processor):
    path = take()
    data = bytearray(path.read_bytes())
    data[512 + 3] = processor
    path.write_bytes(data)
    with pytest.raises(RecordingError, match=r"take\.c3d: .*export it again"):
        read_mocap(path)


def test_refuses_a_missing_c3d_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "c3d", None)
    with pytest.raises(RecordingError, match=r"pip install 'c3d>=0\.5'"):
        read_mocap(tmp_path / "take.c3d")
