"""Test trajectories: interpolation, sampling, joining, files, jerk and minimum-jerk moves."""

import csv

import numpy as np
import pytest
import yaml

from dynid_ros.errors import TrajectoryError
from dynid_ros.files import parse_yaml
from dynid_ros.trajectories import Trajectory, minimum_jerk, move, shortest_duration, trajectory as trajectory_module

JOINTS = ("a", "b")
FIELDS = ("position", "velocity", "acceleration")


def compute_cubic(time, start=0.0):
    """Return q = start + (t³, -2t²) and its derivatives."""
    t = np.asarray(time)
    zero = np.zeros_like(t)
    return (
        start + np.stack([t**3, -2 * t**2], axis=-1),
        np.stack([3 * t**2, -4 * t], axis=-1),
        np.stack([6 * t, -4 + zero], axis=-1),
    )


def create_motion(end=2.0, start=0.0):
    time = np.array([0.0, 0.5, end])
    return Trajectory(JOINTS, time, *compute_cubic(time, start))


def test_interpolation_is_exact_for_cubics():
    time = np.linspace(0.0, 2.0, 77)
    for values, expected in zip(create_motion().at(time), compute_cubic(time), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-12)
    for values, expected in zip(create_motion().at(1.3), compute_cubic(1.3), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-12)


def test_arm_rests_before_and_after_the_motion():
    position, velocity, acceleration = create_motion().at([-1.0, 3.0])
    np.testing.assert_array_equal(position, create_motion().position[[0, -1]])
    assert not velocity.any()
    assert not acceleration.any()


@pytest.mark.parametrize(("rate", "n_samples"), [(10.0, 21), (3.0, 7), (7.0, 15), (0.1, 2)])
def test_sampling_preserves_motion_and_duration(rate, n_samples):
    sampled = create_motion().sample(rate)
    assert sampled.n_samples == n_samples
    assert sampled.duration == 2.0
    np.testing.assert_allclose(np.diff(sampled.time)[:-1], 1.0 / rate)
    np.testing.assert_allclose(sampled.position, compute_cubic(sampled.time)[0], atol=1e-12)
    with pytest.raises(TrajectoryError, match="must be positive, got 0 Hz"):
        create_motion().sample(0.0)


def test_join_shifts_time_and_drops_duplicate_samples():
    first = Trajectory(JOINTS, [0.0, 1.0], [[0, 0], [1, 1]], np.zeros((2, 2)), np.zeros((2, 2)))
    second = Trajectory(JOINTS, [0.0, 2.0, 3.0], [[1, 1], [2, 2], [0, 0]], np.zeros((3, 2)), np.zeros((3, 2)))
    joined = Trajectory.join([first, second])
    np.testing.assert_array_equal(joined.time, [0.0, 1.0, 3.0, 4.0])
    np.testing.assert_array_equal(joined.position[:, 0], [0, 1, 2, 0])


def test_join_refuses_jumps():
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
    selected = create_motion().select(["b", "a"])
    np.testing.assert_array_equal(selected.velocity, create_motion().velocity[:, ::-1])
    with pytest.raises(TrajectoryError, match="no joint c; the trajectory moves a, b"):
        create_motion().select(["c"])


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
def test_refuses_malformed_samples(change, message):
    fields = {field: getattr(create_motion(), field) for field in ("time", *FIELDS)}
    fields.update(change)
    with pytest.raises(TrajectoryError, match=message):
        Trajectory(JOINTS, **fields)


def test_trajectory_file_round_trips_exactly(tmp_path):
    path = create_motion().save(tmp_path / "new" / "motion.yaml")
    read = Trajectory.read(path)
    assert read.joint_names == JOINTS
    for field in ("time", *FIELDS):
        np.testing.assert_array_equal(getattr(read, field), getattr(create_motion(), field))
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
def test_refuses_malformed_trajectory_files(tmp_path, content, message):
    path = tmp_path / "motion.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(TrajectoryError, match=message) as error:
        Trajectory.read(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_reads_rows_without_the_yaml_parser(tmp_path, monkeypatch):
    path = create_motion().save(tmp_path / "motion.yaml")
    assert yaml.safe_load(path.read_text())["velocity"] == create_motion().velocity.tolist()
    texts = []
    monkeypatch.setattr(trajectory_module, "parse_yaml", lambda text: texts.append(text) or parse_yaml(text))
    Trajectory.read(path)
    assert [len(text.splitlines()) for text in texts] == [2]


def test_reads_wrapped_rows_and_tiny_numbers_exactly(tmp_path):
    values = np.random.default_rng(0).normal(size=(3, 4, 9)) * 10.0 ** np.arange(-20, 16, 4)
    trajectory = Trajectory(tuple("abcdefghi"), np.arange(4.0), *values)
    content = {"format": "dynid-trajectory/1", "joint_names": list(trajectory.joint_names)}
    content.update({field: getattr(trajectory, field).tolist() for field in ("time", *FIELDS)})
    wrapped = tmp_path / "wrapped.yaml"
    wrapped.write_text(yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120))
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump(content))
    for path in (wrapped, other, trajectory.save(tmp_path / "saved.yaml")):
        read = Trajectory.read(path)
        for field in ("time", *FIELDS):
            np.testing.assert_array_equal(getattr(read, field), getattr(trajectory, field))


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
def test_refuses_rows_that_are_not_yaml(tmp_path, rows):
    path = tmp_path / "motion.yaml"
    path.write_text(HEAD + rows)
    with pytest.raises(TrajectoryError, match="trajectory"):
        Trajectory.read(path)


def test_csv_contains_all_values(tmp_path):
    path = create_motion().write_csv(tmp_path / "motion.csv")
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["t", *(f"{joint}_{field}" for field in FIELDS for joint in JOINTS)]
    np.testing.assert_array_equal([float(row["b_velocity"]) for row in rows], create_motion().velocity[:, 1])


def test_jerk_of_a_cubic_is_constant():
    np.testing.assert_allclose(create_motion().jerk([0.0, 0.7, 2.0]), [[6, 0]] * 3, atol=1e-9)
    np.testing.assert_array_equal(create_motion().jerk([-1.0, 3.0]), np.zeros((2, 2)))
    time, peak = create_motion().jerk_peaks()
    np.testing.assert_allclose(peak, [[6, 0], [6, 0]], atol=1e-9)
    assert time.shape == (2, 2)


def test_jerk_peaks_match_dense_samples():
    rng = np.random.default_rng(0)
    time = np.cumsum(np.concatenate([[0.0], rng.uniform(0.1, 0.5, 12)]))
    trajectory = Trajectory(JOINTS, time, *rng.standard_normal((3, 13, 2)))
    times, peak = trajectory.jerk_peaks()
    for k in range(12):
        inside = np.linspace(time[k], time[k + 1], 4001)[:-1]
        largest = np.abs(trajectory.jerk(inside)).max(axis=0)
        np.testing.assert_allclose(np.abs(peak[k]), largest, rtol=2e-3)
        assert np.all((times[k] >= time[k]) & (times[k] <= time[k + 1]))
        differences = np.gradient(trajectory.at(inside)[2], inside, axis=0)[1:-1]
        np.testing.assert_allclose(differences, trajectory.jerk(inside)[1:-1], atol=1e-2 * largest.max())


def test_sampling_keeps_corners_of_the_acceleration():
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
    dense = joined.sample(500.0)  # no sample is at a significant corner: repeated sampling adds nothing
    assert dense.sample(50.0).n_samples <= joined.sample(50.0).n_samples + 2


def test_minimum_jerk_matches_the_formula():
    """Ends and middle follow from q0 + Δ(10 s³ − 15 s⁴ + 6 s⁵)."""
    position, velocity, acceleration = minimum_jerk([1.0], [3.0], 4.0, [0.0, 1.0, 2.0, 4.0])
    np.testing.assert_allclose(position[:, 0], [1.0, 1.0 + 2 * 0.103515625, 2.0, 3.0], atol=1e-15)
    np.testing.assert_allclose(velocity[:, 0], [0.0, 0.52734375, 0.9375, 0.0], atol=1e-15)
    np.testing.assert_allclose(acceleration[:, 0], [0.0, 0.703125, 0.0, 0.0], atol=1e-15)


def test_move_interpolates_the_minimum_jerk_formula():
    time = np.linspace(0.0, 0.8, 101)
    expected = minimum_jerk([0.0, 2.0], [1.0, -3.0], 0.8, time)
    for values, formula in zip(move(("a", "b"), [0.0, 2.0], [1.0, -3.0], 0.8).at(time), expected, strict=True):
        np.testing.assert_allclose(values, formula, atol=1e-11)


@pytest.mark.parametrize(
    ("displacement", "velocity", "acceleration", "binding"),
    [([1.0, -0.1], [0.5, 9.0], [99.0, 99.0], "velocity"), ([0.01, -0.3], [9.0, 9.0], [5.0, 2.0], "acceleration")],
)
def test_shortest_duration_reaches_a_limit(displacement, velocity, acceleration, binding):
    duration = shortest_duration(displacement, velocity, acceleration)
    _, speed, rate = minimum_jerk([0.0, 0.0], displacement, duration, np.linspace(0, duration, 40001))
    used = {"velocity": np.abs(speed).max(0) / velocity, "acceleration": np.abs(rate).max(0) / acceleration}
    assert used[binding].max() == pytest.approx(1.0, abs=1e-6)
    assert max(part.max() for part in used.values()) <= 1.0 + 1e-9


def test_refuses_moves_without_duration():
    assert shortest_duration([0.0], [1.0], [1.0]) == 0.0
    with pytest.raises(TrajectoryError, match="positive duration, got 0 s"):
        move(("a",), [0.0], [0.0], 0.0)


def test_jerk_limits_the_shortest_duration():
    duration = shortest_duration([0.5, -1.0], [9.0, 9.0], [99.0, 99.0], [np.inf, 10.0])
    assert duration == pytest.approx((60 * 1.0 / 10.0) ** (1 / 3))
    assert shortest_duration([0.5], [1.0], [2.0], np.inf) == shortest_duration([0.5], [1.0], [2.0])
