"""Results that several modules test; each is computed once."""

from typing import NamedTuple

import flexible_experiments as experiments
import pa10
import pytest

from dynid_ros.identification.flexible import FlexibleJointIdentification, FlexibleResult

SECONDS = 8.0


class Fitted(NamedTuple):
    """An experiment, its true joint parameters, and the result."""

    experiment: experiments.Experiment
    truth: pa10.FlexibleJoint
    result: FlexibleResult


@pytest.fixture(scope="session")
def by_camera():
    """Return the result of joint 2; cameras with a clock offset of 5 ms measure its link."""
    experiment = experiments.shorten(experiments.single_joint(2), SECONDS)
    result = FlexibleJointIdentification(experiment.robot).fit(experiment.recording, links=experiment.links)
    return Fitted(experiment, pa10.table_one(2), result)


@pytest.fixture(scope="session")
def by_encoders():
    """Return the result of joint 3; an encoder measures its link."""
    experiment = experiments.shorten(experiments.single_joint(3), SECONDS)
    result = FlexibleJointIdentification(experiment.robot).fit(experiment.recording_with_encoders)
    return Fitted(experiment, pa10.table_one(3), result)
