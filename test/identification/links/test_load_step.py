"""Whether recordings across which the load changes are refused, and sound ones are not."""

from dataclasses import replace

import numpy as np
import pytest
from link_problems import MASS, PLAIN, Drive, Fourier, chain, loaded_torque, run as plain, wrong
from slide_arms import cylindrical

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LinkIdentification

START = 11.0


def fit(robot, *recordings):
    return LinkIdentification(wrong(robot), friction=PLAIN).fit(*recordings)


@pytest.mark.parametrize(("begin", "end"), [(START, np.inf), (7.0, 14.0)])
def test_a_load_that_is_taken_up_is_refused_with_time_and_mass(begin, end):
    """Whether or not it is put down again."""
    robot = chain()
    run = plain(robot)
    is_carried = (run.time >= begin) & (run.time < end)
    taken_up = replace(run, torque=run.torque + loaded_torque(robot, run) * is_carried[:, None])
    with pytest.raises(IdentificationError, match="its load changed") as error:
        fit(robot, taken_up)
    words = str(error.value).split()
    assert float(words[words.index("=") + 1]) == pytest.approx(begin, abs=0.3)
    assert float(words[words.index("carries") + 1]) == pytest.approx(MASS, rel=0.1)


@pytest.mark.parametrize(
    ("change", "said"),
    [([MASS], "kg more"), ([-MASS], "kg less"), ([0, 0.1], "another mass moment"), ([0, -0.1], "another mass moment")],
)
def test_a_change_of_the_mass_or_of_a_moment_alone_is_refused_whatever_its_sign(change, said):
    robot = chain()
    run = plain(robot)
    body = np.pad(np.array(change, dtype=float), (0, 10 - len(change)))
    slipped = replace(run, torque=run.torque + loaded_torque(robot, run, body) * (run.time >= START)[:, None])
    with pytest.raises(IdentificationError, match=said):
        fit(robot, slipped)


@pytest.mark.parametrize("order", [1, -1])
def test_a_tool_in_one_of_two_recordings_is_refused(order):
    robot = chain()
    bare, run = plain(robot, 0), plain(robot, 1)
    tool = replace(run, torque=run.torque + loaded_torque(robot, run))
    with pytest.raises(IdentificationError, match="kg more" if order > 0 else "kg less") as error:
        fit(robot, *[bare, tool][::order])
    assert str(error.value).startswith("run_1" if order > 0 else "run_0")


@pytest.mark.parametrize("place", [0, 2])
def test_a_tool_in_one_of_three_recordings_is_refused_with_its_mass(place):
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
    """A gain that jumps changes the torques of one joint alone."""
    return run.torque * np.where(run.time[:, None] > START, [1.0, 1.0, 1.1], 1.0)


@pytest.mark.parametrize(
    ("change", "seed"), [(warming_up, 0), (drifting, 1), (another_friction_law, 0), (louder_sensor, 1)]
)
def test_what_is_no_load_is_not_taken_for_one(change, seed):
    robot = chain()
    run = plain(robot, seed)
    moving = replace(run, velocity=Fourier(robot.n_joints, seed, size=0.6)(run.time)[1])
    fit(robot, replace(run, torque=change(moving)))


@pytest.mark.parametrize("seed", [3, 20])
def test_a_load_without_weight_in_any_joint_is_not_imagined(seed):
    """Upright axes hardly determine the mass moment of a load: its estimates differ by more than what matters."""
    robot = cylindrical()
    friction = replace(PLAIN, rotor_inertia=True)
    LinkIdentification(wrong(robot), friction=friction).fit(plain(robot, seed, Drive(rotor=0.5), noise=0.15))
