"""Recordings with a load change are refused; sound recordings are accepted."""

from dataclasses import replace

import numpy as np
import pytest
from link_problems import MASS, PLAIN, Drive, Fourier, chain, distort, loaded_torque, run as plain
from slide_arms import cylindrical

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LinkIdentification

START = 11.0


def fit(robot, *recordings):
    return LinkIdentification(distort(robot), friction=PLAIN).fit(*recordings)


@pytest.mark.parametrize(("begin", "end"), [(START, np.inf), (7.0, 14.0)])
def test_refuses_a_picked_up_load_with_time_and_mass(begin, end):
    """The load may be put down again."""
    robot = chain()
    run = plain(robot)
    is_carried = (run.time >= begin) & (run.time < end)
    loaded = replace(run, torque=run.torque + loaded_torque(robot, run) * is_carried[:, None])
    with pytest.raises(IdentificationError, match="its load changed") as error:
        fit(robot, loaded)
    words = str(error.value).split()
    assert float(words[words.index("=") + 1]) == pytest.approx(begin, abs=0.3)
    assert float(words[words.index("carries") + 1]) == pytest.approx(MASS, rel=0.1)


def test_refuses_a_load_that_explains_less_than_half_of_the_noise():
    """Its p-value decides, with residuals that are correlated in time."""
    robot = chain()
    run = plain(robot, noise=3.0)
    loaded = replace(run, torque=run.torque + loaded_torque(robot, run) * (run.time >= START)[:, None])
    with pytest.raises(IdentificationError, match=r"carries 0\.8\d* kg more"):
        fit(robot, loaded)


@pytest.mark.parametrize(
    ("change", "message"),
    [([MASS], "kg more"), ([-MASS], "kg less"), ([0, 0.1], "another mass moment"), ([0, -0.1], "another mass moment")],
)
def test_refuses_changes_of_mass_or_moment_of_either_sign(change, message):
    robot = chain()
    run = plain(robot)
    body = np.pad(np.array(change, dtype=float), (0, 10 - len(change)))
    slipped = replace(run, torque=run.torque + loaded_torque(robot, run, body) * (run.time >= START)[:, None])
    with pytest.raises(IdentificationError, match=message):
        fit(robot, slipped)


@pytest.mark.parametrize("order", [1, -1])
def test_refuses_a_tool_in_one_of_two_recordings(order):
    robot = chain()
    bare = plain(robot, 0)
    run = plain(robot, 1)
    tool = replace(run, torque=run.torque + loaded_torque(robot, run))
    with pytest.raises(IdentificationError, match="kg more" if order > 0 else "kg less") as error:
        fit(robot, *[bare, tool][::order])
    assert str(error.value).startswith("run_1" if order > 0 else "run_0")


@pytest.mark.parametrize("place", [0, 2])
def test_refuses_a_tool_in_one_of_three_recordings(place):
    robot = chain()
    runs = [plain(robot, seed) for seed in range(3)]
    runs[place] = replace(runs[place], torque=runs[place].torque + loaded_torque(robot, runs[place]))
    with pytest.raises(IdentificationError, match="its load changed") as error:
        fit(robot, *runs)
    words = str(error.value).split()
    assert float(words[words.index("carries") + 1]) == pytest.approx(MASS, rel=0.1)
    assert str(error.value).startswith("run_1" if place < 2 else "run_2")


def warming_up(run):
    return run.torque + np.exp(-run.time / 6.0)[:, None] * (1.0 * np.tanh(run.velocity / 0.02) + 0.3 * run.velocity)


def drifting(run):
    return run.torque + 0.03 * run.time[:, None] * [1.0, 0.0, -1.0]


def another_friction_law(run):
    return (
        run.torque
        + np.tanh(run.velocity / 0.02) * np.exp(-((run.velocity / 0.3) ** 2))
        + 0.1 * np.sin(5 * run.position)
    )


def louder_sensor(run):
    """Return the torque with a gain that jumps, which changes one joint only."""
    return run.torque * np.where(run.time[:, None] > START, [1.0, 1.0, 1.1], 1.0)


@pytest.mark.parametrize(
    ("change", "seed"), [(warming_up, 0), (drifting, 1), (another_friction_law, 0), (louder_sensor, 1)]
)
def test_accepts_changes_other_than_of_the_load(change, seed):
    robot = chain()
    run = plain(robot, seed)
    moving = replace(run, velocity=Fourier(robot.n_joints, seed, size=0.6)(run.time)[1])
    fit(robot, replace(run, torque=change(moving)))


@pytest.mark.parametrize("seed", [3, 20])
def test_accepts_vertical_axes_that_hardly_determine_a_load(seed):
    """Vertical axes hardly determine the mass moment of a load, so its estimates differ between the recordings."""
    robot = cylindrical()
    friction = replace(PLAIN, rotor_inertia=True)
    LinkIdentification(distort(robot), friction=friction).fit(plain(robot, seed, Drive(rotor=0.5), noise=0.15))
