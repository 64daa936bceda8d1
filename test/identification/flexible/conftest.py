"""Fits that several files look at, each made once."""

from typing import NamedTuple

import flexible_experiments as experiments
import pa10
import pytest

from dynid_ros.identification.flexible import FlexibleJointIdentification, FlexibleResult

SECONDS = 8.0


class Fitted(NamedTuple):
    """An experiment, the joint that is true, and what was found."""

    experiment: experiments.Experiment
    truth: pa10.FlexibleJoint
    result: FlexibleResult


@pytest.fixture(scope="session")
def by_camera():
    """Joint 2, its link seen by cameras 5 ms off."""
    experiment = experiments.shortened(experiments.single_joint(2), SECONDS)
    result = FlexibleJointIdentification(experiment.robot).fit(experiment.recording, links=experiment.links)
    return Fitted(experiment, pa10.table_one(2), result)


@pytest.fixture(scope="session")
def by_encoders():
    """Joint 5, its link seen by an encoder of its own."""
    experiment = experiments.shortened(experiments.single_joint(5), SECONDS)
    result = FlexibleJointIdentification(experiment.robot).fit(experiment.recording_with_encoders)
    return Fitted(experiment, pa10.table_one(5), result)
