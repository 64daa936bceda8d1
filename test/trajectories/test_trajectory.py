import csv

import numpy as np
import pytest
import yaml

from dynid_ros.errors import TrajectoryError
from dynid_ros.files import parse_yaml
from dynid_ros.trajectories import Trajectory, minimum_jerk, move, shortest_duration, trajectory

JOINTS = ("a", "b")
FIELDS = ("position", "velocity", "acceleration")


def cubic(time, start=0.0):
    """q = start + (t³, -2t²): a motion whose polynomials are known."""
    t = np.asarray(time)
    zero = np.zeros_like(t)
    return (
        start + np.stack([t**3, -2 * t**2], axis=-1),
        np.stack([3 * t**2, -4 * t], axis=-1),
        np.stack([6 * t, -4 + zero], axis=-1),
    )


def motion(end=2.0, start=0.0):
    time = np.array([0.0, 0.5, end])
    return Trajectory(JOINTS, time, *cubic(time, start))


def test_motion_between_samples_is_the_polynomial_they_lie_on():
    time = np.linspace(0.0, 2.0, 77)
    for values, expected in zip(motion().at(time), cubic(time), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-12)
    for values, expected in zip(motion().at(1.3), cubic(1.3), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-12)


def test_arm_rests_before_and_after():
    position, velocity, acceleration = motion().at([-1.0, 3.0])
    np.testing.assert_array_equal(position, motion().position[[0, -1]])
    assert not velocity.any()
    assert not acceleration.any()


@pytest.mark.parametrize(("rate", "n_samples"), [(10.0, 21), (3.0, 7), (7.0, 15), (0.1, 2)])
def test_sampling_keeps_the_motion_and_its_end(rate, n_samples):
    sampled = motion().sample(rate)
    assert sampled.n_samples == n_samples
    assert sampled.duration == 2.0
    np.testing.assert_allclose(np.diff(sampled.time)[:-1], 1.0 / rate)
    np.testing.assert_allclose(sampled.position, cubic(sampled.time)[0], atol=1e-12)
    with pytest.raises(TrajectoryError, match="must be positive, got 0 Hz"):
        motion().sample(0.0)


def test_join_shifts_time_and_drops_doubled_samples():
    first = Trajectory(JOINTS, [0.0, 1.0], [[0, 0], [1, 1]], np.zeros((2, 2)), np.zeros((2, 2)))
    second = Trajectory(JOINTS, [0.0, 2.0, 3.0], [[1, 1], [2, 2], [0, 0]], np.zeros((3, 2)), np.zeros((3, 2)))
    joined = Trajectory.join([first, second])
    np.testing.assert_array_equal(joined.time, [0.0, 1.0, 3.0, 4.0])
    np.testing.assert_array_equal(joined.position[:, 0], [0, 1, 2, 0])


def test_join_refuses_a_jump():
    rest = np.zeros((2, 2))
    first = Trajectory(JOINTS, [0.0, 1.0], [[0, 0], [1, 1]], rest, rest)
    with pytest.raises(TrajectoryError, match=r"part 1 starts at position 1.1 rad or m of joint 'b'.* ends at 1$"):
        Trajectory.join([first, Trajectory(JOINTS, [0.0, 1.0], [[1, 1.1], [2, 2]], rest, rest)])
    moving = Trajectory(JOINTS, [0.0, 1.0], [[1, 1], [2, 2]], [[0.3, 0], [0, 0]], rest)
    with pytest.raises(TrajectoryError, match=r"velocity 0.3 per s of joint 'a'"):
        Trajectory.join([first, moving])
    with pytest.raises(TrajectoryError, match="part 1 moves"):
        Trajectory.join([first, first.select(["b", "a"])])


def test_select_reorders_by_name():
    selected = motion().select(["b", "a"])
    np.testing.assert_array_equal(selected.velocity, motion().velocity[:, ::-1])
    with pytest.raises(TrajectoryError, match="no joint c; the trajectory moves a, b"):
        motion().select(["c"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": [0.0]}, "at least two samples"),
        ({"time": [0.0, 0.5, 0.5]}, "increase strictly from 0"),
        ({"time": [0.1, 0.5, 2.0]}, "increase strictly from 0"),
        ({"time": [0.0, 0.5, 1e6]}, "a motion of 1e\\+06 s takes more than 8 h"),
        ({"time": [0.0, np.nan, 2.0]}, "increase strictly from 0"),
        ({"velocity": np.zeros((3, 1))}, r"velocity has shape \(3, 1\); expected \(3, 2\)"),
        ({"position": np.zeros((2, 2))}, r"position has shape \(2, 2\)"),
    ],
)
def test_malformed_samples_are_refused(change, message):
    fields = {field: getattr(motion(), field) for field in ("time", *FIELDS)} | change
    with pytest.raises(TrajectoryError, match=message):
        Trajectory(JOINTS, **fields)


def test_file_round_trip_is_exact(tmp_path):
    path = motion().save(tmp_path / "new" / "motion.yaml")
    back = Trajectory.read(path)
    assert back.joint_names == JOINTS
    for field in ("time", *FIELDS):
        np.testing.assert_array_equal(getattr(back, field), getattr(motion(), field))
    assert [entry.name for entry in path.parent.iterdir()] == ["motion.yaml"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read trajectory"),
        ("a: [", "cannot read trajectory"),
        ("!!python/object/apply:os.system [exit]", "cannot read trajectory"),
        ("[1, 2]", "expected 'format: dynid-trajectory/1'"),
        ("format: dynid/1", "expected 'format: dynid-trajectory/1'"),
        ("{format: dynid-trajectory/1, joint_names: [a], time: [0, 1]}", "lacks the entry 'position'"),
        (
            "{format: dynid-trajectory/1, joint_names: [a], time: [x], position: [], velocity: [], acceleration: []}",
            "is malformed",
        ),
        (
            "{format: dynid-trajectory/1, joint_names: [], time: [0, 1], position: [1], velocity: 0, acceleration: 1}",
            r"motion.yaml': position has shape \(1,\)",
        ),
    ],
)
def test_bad_file_is_one_clear_error(tmp_path, content, message):
    path = tmp_path / "motion.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(TrajectoryError, match=message) as error:
        Trajectory.read(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_rows_are_read_without_the_yaml_parser(tmp_path, monkeypatch):
    path = motion().save(tmp_path / "motion.yaml")
    assert yaml.safe_load(path.read_text())["velocity"] == motion().velocity.tolist()
    texts = []
    monkeypatch.setattr(trajectory, "parse_yaml", lambda text: texts.append(text) or parse_yaml(text))
    Trajectory.read(path)
    assert [len(text.splitlines()) for text in texts] == [2]


def test_wrapped_rows_and_tiny_numbers_are_read_exactly(tmp_path):
    values = np.random.default_rng(0).normal(size=(3, 4, 9)) * 10.0 ** np.arange(-20, 16, 4)
    wild = Trajectory(tuple("abcdefghi"), np.arange(4.0), *values)
    content = {"format": "dynid-trajectory/1", "joint_names": list(wild.joint_names)}
    content |= {field: getattr(wild, field).tolist() for field in ("time", *FIELDS)}
    wrapped = tmp_path / "wrapped.yaml"
    wrapped.write_text(yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120))
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump(content))
    for path in (wrapped, other, wild.save(tmp_path / "saved.yaml")):
        back = Trajectory.read(path)
        for field in ("time", *FIELDS):
            np.testing.assert_array_equal(getattr(back, field), getattr(wild, field))


HEAD = "format: dynid-trajectory/1\njoint_names: [a]\n"


@pytest.mark.parametrize(
    "rows",
    [
        "time: [0, 1]\nposition:\n- [0]\n- [1]\nvelocity:\n- [0]\n- [0]\nacceleration:\n- [0]\n- [0]\ntime: [0, 2]\n",
        "time: [0, 1]\ntime: [0, 1]\nposition:\n- [0]\n- [1]\nvelocity:\n- [0]\n- [0]\nacceleration:\n- [0]\n- [0]\n",
        "time: [0, 1]\nposition:\n- [0], [1]\nvelocity:\n- [0]\n- [0]\nacceleration:\n- [0]\n- [0]\n",
        "time: [0, 1]\nposition:\n- 0, 1\n- [1]\nvelocity:\n- [0]\n- [0]\nacceleration:\n- [0]\n- [0]\n",
        f"time: [0, 1]\nposition: {'[' * 100_000}\nvelocity: [0]\nacceleration: [0]\n",
    ],
)
def test_rows_that_are_no_yaml_are_refused(tmp_path, rows):
    path = tmp_path / "motion.yaml"
    path.write_text(HEAD + rows)
    with pytest.raises(TrajectoryError, match="trajectory"):
        Trajectory.read(path)


def test_csv_holds_every_value(tmp_path):
    path = motion().write_csv(tmp_path / "motion.csv")
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["t", *(f"{joint}_{field}" for field in FIELDS for joint in JOINTS)]
    np.testing.assert_array_equal([float(row["b_velocity"]) for row in rows], motion().velocity[:, 1])


def test_jerk_of_a_known_polynomial_and_its_peaks():
    np.testing.assert_allclose(motion().jerk([0.0, 0.7, 2.0]), [[6, 0]] * 3, atol=1e-9)
    np.testing.assert_array_equal(motion().jerk([-1.0, 3.0]), np.zeros((2, 2)))
    time, peak = motion().jerk_peaks()
    np.testing.assert_allclose(peak, [[6, 0], [6, 0]], atol=1e-9)
    assert time.shape == (2, 2)


def test_jerk_peaks_are_those_between_samples():
    rng = np.random.default_rng(0)
    time = np.cumsum(np.concatenate([[0.0], rng.uniform(0.1, 0.5, 12)]))
    wild = Trajectory(JOINTS, time, *rng.standard_normal((3, 13, 2)))
    when, peak = wild.jerk_peaks()
    for k in range(12):
        inside = np.linspace(time[k], time[k + 1], 4001)[:-1]
        largest = np.abs(wild.jerk(inside)).max(axis=0)
        np.testing.assert_allclose(np.abs(peak[k]), largest, rtol=2e-3)
        assert np.all((when[k] >= time[k]) & (when[k] <= time[k + 1]))
        differences = np.gradient(wild.at(inside)[2], inside, axis=0)[1:-1]
        np.testing.assert_allclose(differences, wild.jerk(inside)[1:-1], atol=1e-2 * largest.max())


def test_sampling_keeps_samples_where_the_jerk_jumps():
    parts = [move(JOINTS, [0, 0], [1, 0], 1.03), move(JOINTS, [1, 0], [1, 0], 0.5), move(JOINTS, [1, 0], [1, 1], 0.9)]
    joined = Trajectory.join(parts)
    sampled = joined.sample(10.0)
    for corner in (1.03, 1.53):
        assert np.abs(sampled.time - corner).min() < 1e-12
    assert np.diff(sampled.time).max() <= 0.2
    assert np.diff(sampled.time).min() > 0.02
    time = np.linspace(0.0, joined.duration, 1000)
    for values, expected in zip(sampled.at(time), joined.at(time), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-9)
    dense = joined.sample(500.0)  # every sample of it is a small corner or none: sampling it again adds nothing
    assert dense.sample(50.0).n_samples <= joined.sample(50.0).n_samples + 2


def test_known_values():
    """Ends and middle of q0 + Δ(10 s³ − 15 s⁴ + 6 s⁵), by hand."""
    position, velocity, acceleration = minimum_jerk([1.0], [3.0], 4.0, [0.0, 1.0, 2.0, 4.0])
    np.testing.assert_allclose(position[:, 0], [1.0, 1.0 + 2 * 0.103515625, 2.0, 3.0], atol=1e-15)
    np.testing.assert_allclose(velocity[:, 0], [0.0, 0.52734375, 0.9375, 0.0], atol=1e-15)
    np.testing.assert_allclose(acceleration[:, 0], [0.0, 0.703125, 0.0, 0.0], atol=1e-15)


def test_move_is_the_formula_between_its_samples():
    time = np.linspace(0.0, 0.8, 101)
    expected = minimum_jerk([0.0, 2.0], [1.0, -3.0], 0.8, time)
    for values, formula in zip(move(("a", "b"), [0.0, 2.0], [1.0, -3.0], 0.8).at(time), expected, strict=True):
        np.testing.assert_allclose(values, formula, atol=1e-11)


@pytest.mark.parametrize(
    ("displacement", "velocity", "acceleration", "binding"),
    [
        ([1.0, -0.1], [0.5, 9.0], [99.0, 99.0], "velocity"),
        ([0.01, -0.3], [9.0, 9.0], [5.0, 2.0], "acceleration"),
    ],
)
def test_shortest_duration_meets_its_limits_exactly(displacement, velocity, acceleration, binding):
    duration = shortest_duration(displacement, velocity, acceleration)
    _, speed, rate = minimum_jerk([0.0, 0.0], displacement, duration, np.linspace(0, duration, 40001))
    used = {"velocity": np.abs(speed).max(0) / velocity, "acceleration": np.abs(rate).max(0) / acceleration}
    assert used[binding].max() == pytest.approx(1.0, abs=1e-6)
    assert max(part.max() for part in used.values()) <= 1.0 + 1e-9


def test_no_displacement_takes_no_time_and_no_time_is_no_move():
    assert shortest_duration([0.0], [1.0], [1.0]) == 0.0
    with pytest.raises(TrajectoryError, match="positive duration, got 0 s"):
        move(("a",), [0.0], [0.0], 0.0)


def test_jerk_limits_the_shortest_duration():
    duration = shortest_duration([0.5, -1.0], [9.0, 9.0], [99.0, 99.0], [np.inf, 10.0])
    assert duration == pytest.approx((60 * 1.0 / 10.0) ** (1 / 3))
    assert shortest_duration([0.5], [1.0], [2.0], np.inf) == shortest_duration([0.5], [1.0], [2.0])
