"""Define a small arm whose gravity torque has a closed form, and a simulated gravity experiment on it."""

from types import SimpleNamespace
from xml.sax.saxutils import quoteattr

import known_problems
import numpy as np
import pytest

from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.static_samples import Samples
from dynid_ros.model import RobotModel

UPPER, LOWER = 0.4, 0.3  # m, from shoulder to elbow and from elbow to wrist
SHOULDER_MOMENT, ELBOW_MOMENT = 3.2, 0.9  # kg m, of all links beyond shoulder and elbow about their axes
WRIST_MOMENT = (0.05, 0.02)
OFFSET = np.array([0.3, -0.5, 0.2, 0.01])
COULOMB = np.array([1.0, 1.5, 0.6, 0.1])
NAMES = ("waist", "shoulder", "elbow", "wrist")


def build_urdf(names=NAMES):
    """Return the URDF: axes z, y, y, x at rest along x, without inertial elements."""
    axes = ("0 0 1", "0 1 0", "0 1 0", "1 0 0")
    places = ("0 0 0.2", "0 0 0", f"{UPPER} 0 0", f"{LOWER} 0 0")
    links = "".join(f'<link name="link_{i}"/>' for i in range(5))
    joints = "".join(
        f'<joint name={quoteattr(name)} type="revolute"><parent link="link_{i}"/><child link="link_{i + 1}"/>'
        f'<origin xyz="{place}"/><axis xyz="{axis}"/><limit lower="-3" upper="3" velocity="2" effort="99"/></joint>'
        for i, (name, axis, place) in enumerate(zip(names, axes, places, strict=True))
    )
    return f'<robot name="arm">{links}{joints}</robot>'


def gravity_torque(q):
    """Return the holding torque (N, 4) in N m, the gradient of the potential energy."""
    shoulder = q[:, 1]
    tilt = q[:, 1] + q[:, 2]
    a, b = WRIST_MOMENT  # kg m, first moments of the wrist link along y and z of its frame at zero
    level = a * np.cos(q[:, 3]) - b * np.sin(q[:, 3])
    high = a * np.sin(q[:, 3]) + b * np.cos(q[:, 3])
    elbow = -ELBOW_MOMENT * np.cos(tilt) - high * np.sin(tilt)
    return known_problems.GRAVITY * np.stack(
        [np.zeros(len(q)), -SHOULDER_MOMENT * np.cos(shoulder) + elbow, elbow, level * np.cos(tilt)], axis=1
    )


def experiment(joints=(0, 1, 2, 3), span=2.4, steps=8, noise=0.02, seed=0):
    q = known_problems.single_rotations(np.array([[0.3, -0.4, 0.7, 0.5], [-0.5, 0.8, -1.1, 1.2]]), span, steps, joints)
    direction = known_problems.approach_directions(steps, 2 * len(joints), 4)
    torque = gravity_torque(q) + OFFSET + COULOMB * direction
    torque += np.random.default_rng(seed).normal(0, noise, torque.shape)
    return build_samples(q, torque, direction)


def build_samples(q, torque, direction, velocity=None):
    """Return static samples, or moving samples if `velocity` is given."""
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
    """Return the data with arrays that a test cannot change."""
    for value in vars(data).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return data


@pytest.fixture(name="arm", scope="session")
def fixture_arm():
    """Return the functions and constants of this module."""
    return SimpleNamespace(
        urdf=build_urdf,
        gravity_torque=gravity_torque,
        experiment=experiment,
        samples=build_samples,
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
    """Return a new document, which the test may change."""
    return result.document()
