"""A small arm whose gravity torque is written down by hand, and what an experiment on it finds."""

from types import SimpleNamespace
from xml.sax.saxutils import quoteattr

import known_problems as known
import numpy as np
import pytest

from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.static_samples import Samples
from dynid_ros.model import RobotModel

UPPER, LOWER = 0.4, 0.3  # m, from shoulder to elbow and from elbow to wrist
MOMENT_2, MOMENT_3 = 3.2, 0.9  # kg m: all that shoulder and elbow carry, stretched out, about their axes
WRIST_MOMENT = (0.05, 0.02)
OFFSET = np.array([0.3, -0.5, 0.2, 0.01])
COULOMB = np.array([1.0, 1.5, 0.6, 0.1])
NAMES = ("waist", "shoulder", "elbow", "wrist")


def build_urdf(names=NAMES):
    """Axes z, y, y, x at rest along x; the inertials are not those of the experiment."""
    axes, places = ("0 0 1", "0 1 0", "0 1 0", "1 0 0"), ("0 0 0.2", "0 0 0", f"{UPPER} 0 0", f"{LOWER} 0 0")
    links = "".join(f'<link name="link_{i}"/>' for i in range(5))
    joints = "".join(
        f'<joint name={quoteattr(name)} type="revolute"><parent link="link_{i}"/><child link="link_{i + 1}"/>'
        f'<origin xyz="{place}"/><axis xyz="{axis}"/><limit lower="-3" upper="3" velocity="2" effort="99"/></joint>'
        for i, (name, axis, place) in enumerate(zip(names, axes, places, strict=True))
    )
    return f'<robot name="arm">{links}{joints}</robot>'


def gravity_torque(q):
    """(N, 4) holding torque, from the potential energy g (heights times masses)."""
    shoulder, tilt = q[:, 1], q[:, 1] + q[:, 2]
    a, b = WRIST_MOMENT  # the wrist's centre, along y and z of its frame at zero, times its mass
    level = a * np.cos(q[:, 3]) - b * np.sin(q[:, 3])
    high = a * np.sin(q[:, 3]) + b * np.cos(q[:, 3])
    elbow = -MOMENT_3 * np.cos(tilt) - high * np.sin(tilt)
    return known.GRAVITY * np.stack(
        [np.zeros(len(q)), -MOMENT_2 * np.cos(shoulder) + elbow, elbow, level * np.cos(tilt)], axis=1
    )


def experiment(joints=(0, 1, 2, 3), span=2.4, steps=8, noise=0.02, seed=0):
    q = known.single_rotations(np.array([[0.3, -0.4, 0.7, 0.5], [-0.5, 0.8, -1.1, 1.2]]), span, steps, joints)
    direction = known.approach_directions(steps, 2 * len(joints), 4)
    torque = gravity_torque(q) + OFFSET + COULOMB * direction
    torque += np.random.default_rng(seed).normal(0, noise, torque.shape)
    return samples_of(q, torque, direction)


def samples_of(q, torque, direction, velocity=None):
    return Samples(
        position=q,
        velocity=np.zeros_like(q) if velocity is None else velocity,
        torque=torque,
        direction=direction,
        static=np.full(len(q), velocity is None),
        time=np.arange(len(q), dtype=float),
        part=np.zeros(len(q), int),
    )


def read_only(data):
    """Arrays that tests share and none may change."""
    for value in vars(data).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return data


@pytest.fixture(name="arm", scope="session")
def fixture_arm():
    """Functions and constants above."""
    return SimpleNamespace(
        urdf=build_urdf,
        gravity_torque=gravity_torque,
        experiment=experiment,
        samples=samples_of,
        offset=OFFSET,
        coulomb=COULOMB,
        names=NAMES,
        reach=(UPPER, LOWER),
    )


@pytest.fixture(name="robot", scope="session")
def fixture_robot():
    return RobotModel.from_urdf(build_urdf())


@pytest.fixture(name="samples", scope="session")
def fixture_samples():
    return read_only(experiment())


@pytest.fixture(name="result", scope="session")
def fixture_result(robot, samples):
    return GravityIdentification(robot).fit_samples(samples, ("run_1.mcap",))


@pytest.fixture(name="document")
def fixture_document(result):
    """Anew for each test, which may change it."""
    return result.document()
