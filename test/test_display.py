"""Test displays of robots, recordings and results, and recordings given as paths and lists."""

import sys

import numpy as np
import pytest
from link_problems import Drive, Fourier, record, ur10

from dynid_ros.display import Displayed
from dynid_ros.errors import DynidError, RecordingError
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import describe_parameters
from dynid_ros.model.friction import JointFriction


@pytest.fixture(name="path", scope="module")
def fixture_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run.npz"
    record(ur10(), Fourier(6, 0, size=0.6), Drive(), seed=0).write_npz(path)
    return path


@pytest.fixture(name="result", scope="module")
def fixture_result(path):
    return LinkIdentification(ur10(), friction=JointFriction(offset=True, smoothing=0.02)).fit(str(path))


def test_frames(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(DynidError, match="pip install pandas"):
        result.to_frame()
    monkeypatch.undo()
    pandas = pytest.importorskip("pandas")
    frame = result.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.index) == list(result.base_parameters.names)
    np.testing.assert_array_equal(frame["value"], result.base_parameters.values)
    assert ((frame["low"] <= frame["value"]) & (frame["value"] <= frame["high"])).all()
    assert list(ur10().to_frame().index) == list(ur10().joint_names)


def test_plots(path, result):
    assert (
        len(result.plot().axes)
        == len(set(describe_parameters(result.robot, result.base_parameters.names)["unit"]))
        == 4
    )
    figure = record(ur10(), Fourier(6, 0, size=0.6), Drive(), seed=0).plot()
    assert {axes.get_ylabel() for axes in figure.axes} >= {"position", "torque"}
    assert all(len(axes.lines) == 6 for axes in figure.axes)


def test_labels_have_link_and_unit():
    slider = RobotModel.from_dh([{"a": 0, "alpha": 0, "d": 0, "theta": 0, "type": "prismatic"}])
    names = ["mcx1", "Izz1", "viscous joint_1", "rotor_inertia joint_1", "coulomb joint_1", "load joint_1"]
    assert describe_parameters(slider, names) == {
        "of": ["link_1", "link_1", *["joint_1"] * 4],
        "unit": ["kg m", "kg m²", "N s/m", "kg", "N", ""],
    }


def test_functions_accept_one_pose():
    robot = ur10()
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 6))
    for one, many in (
        (robot.inverse_dynamics(q, qd, qdd, robot.parameters), robot.inverse_dynamics([q], [qd], [qdd])),
        (robot.gravity_torque(q.tolist(), parameters=robot.parameters), robot.gravity_torque([q])),
        (robot.torque_regressor(q=q, qd=qd, qdd=qdd), robot.torque_regressor([q], [qd], [qdd])),
        (robot.gravity_regressor(q), robot.gravity_regressor([q])),
        (robot.forward_kinematics(q), robot.forward_kinematics([q])),
    ):
        np.testing.assert_array_equal(one, many[0])


def test_paths_and_lists_are_accepted_as_recordings(path, result):
    assert result.sources == (str(path),)
    twice = LinkIdentification(ur10(), friction=result.friction).fit([path, str(path)])
    assert twice.sources == (str(path),) * 2
    assert result.validate(path).relative_rms.max() < 0.05
    with pytest.raises(RecordingError, match="does not exist"):
        GravityIdentification(ur10()).fit("nowhere/")


def test_html_of_a_long_table_reads_only_shown_rows():
    class Long(Displayed):
        def _line(self):
            return "long"

        def _table(self):
            return {"number": range(10**12)}

    assert "999999999988 more rows" in Long()._repr_html_()
