"""Flexible joints of table I with unlike motors and sensor noise: accuracy of the estimates, and refusals."""

import math
from dataclasses import replace
from types import SimpleNamespace

import flexible_experiments as experiments
import numpy as np
import pa10
import pytest
from printed_method import printed_method
from spring_experiments import spring_experiment

from dynid_ros.errors import DynidError, IdentificationError
from dynid_ros.identification.flexible import FlexibleJointIdentification, flexible_identification, starting_values
from dynid_ros.identification.flexible.flexible_result import remarks
from dynid_ros.identification.flexible.runs import check_links
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording

TIME = 0.01 * np.arange(300)
MOTOR = np.stack([0.5 * np.sin(2 * TIME), 0.3 * np.cos(3 * TIME)], axis=1)
MOTORS = Recording(("waist", "elbow"), TIME, MOTOR, np.full_like(MOTOR, np.nan), MOTOR, source="bench.mcap")
LINK = MOTOR + 0.01 * np.sin(7 * TIME)[:, None]


def with_elbow_links(values):
    """Return link positions (N, 2) with the values (N,) for the elbow."""
    return np.column_stack([LINK[:, 0], values])


def test_accepts_link_positions():
    check_links(MOTORS, TIME, LINK)
    check_links(MOTORS, TIME, LINK + np.array([0.3, -2.0]))
    check_links(MOTORS, TIME[::3] + 0.02, LINK[::3])
    partial = LINK.copy()
    partial[50:250] = np.nan
    check_links(MOTORS, TIME, partial)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        (with_elbow_links(MOTOR[:, 1]), "those of its motor"),
        (with_elbow_links(MOTOR[:, 1] + 0.2), "those of its motor"),
        (with_elbow_links(-LINK[:, 1]), "against its motor.*mirrored"),
        (with_elbow_links(np.degrees(LINK[:, 1])), "degrees"),
        (with_elbow_links(1000 * LINK[:, 1]), "millimetres"),
        (with_elbow_links(4 * LINK[:, 1]), "4.* times as far.*expected rad"),
        (with_elbow_links(np.full(300, np.nan)), "no positions of its link"),
    ],
)
def test_refuses_motor_positions_or_wrong_units_as_links(link, message):
    with pytest.raises(IdentificationError, match=f"^bench\\.mcap: joint 'elbow'.*{message}"):
        check_links(MOTORS, TIME, link)


def test_accepts_a_sample_at_the_end_of_the_motors_time():
    check_links(MOTORS, TIME[-10:], LINK[-10:])


def test_refuses_recordings_without_overlap():
    with pytest.raises(IdentificationError, match=r"bench\.mcap: .*from 50\.000 to 52\.990 s.*0\.000 to 2\.990 s"):
        check_links(MOTORS, TIME + 50.0, LINK)


def test_accepts_any_links_of_a_motor_at_rest():
    still = MOTOR.copy()
    still[:, 1] = 0.3
    resting = Recording(("waist", "elbow"), TIME, still, np.full_like(still, np.nan), still)
    check_links(resting, TIME, with_elbow_links(-0.3 + 1e-3 * np.sin(7 * TIME)))


MAX_RELATIVE_ERRORS = {
    "stiffness": 0.03,
    "inertia": 0.05,
    "motor_inertia": 0.05,
    "coulomb": 0.05,
    "viscous": 0.1,
    "motor_viscous": 0.1,
}


def relative_errors(result, truth):
    """Return the relative errors of a single joint by parameter."""
    estimates = {name: result.term(name).values[0] for name in MAX_RELATIVE_ERRORS if name != "inertia"}
    estimates["inertia"] = result.parameters[result.names.index("Iyy1")]
    return {name: abs(value / getattr(truth, name) - 1) for name, value in estimates.items()}


@pytest.mark.parametrize("sensor", ["by_camera", pytest.param("by_encoders", marks=pytest.mark.slow)])
def test_estimates_single_joints_from_noisy_signals(sensor, request):
    _, truth, result = request.getfixturevalue(sensor)
    errors = relative_errors(result, truth)
    assert {name: error for name, error in errors.items() if error > MAX_RELATIVE_ERRORS[name]} == {}
    resonance = math.sqrt(truth.stiffness / truth.inertia) / (2 * math.pi)
    assert result.resonances[0] == pytest.approx(resonance, rel=0.01)
    assert all(result.term(name).decided.all() for name in MAX_RELATIVE_ERRORS if name != "inertia")
    gravity = result.parameters[[result.names.index(name) for name in ("mcx1", "mcz1")]] * pa10.G
    size = math.hypot(truth.gravity_x, truth.gravity_y)
    np.testing.assert_allclose(gravity, [truth.gravity_y, truth.gravity_x], atol=max(0.05 * size, 0.05))


@pytest.mark.slow
def test_estimates_the_clock_offset_of_the_camera(by_camera, by_encoders):
    run = by_camera.result.runs[0]
    assert run.clock_offset == pytest.approx(experiments.CLOCK_OFFSET, abs=2e-4)
    assert 0 < run.clock_offset_error < 2e-4
    assert by_encoders.result.runs[0].clock_offset == 0.0


def test_intervals_span_rivals_and_ripples(by_camera, monkeypatch):
    result = by_camera.result
    shift, difference = np.random.default_rng(0).normal(size=(2, len(result.parameters)))
    ripple = starting_values.Ripple("a ripple", shift)
    monkeypatch.setattr(flexible_identification, "torque_ripples", lambda *_: [ripple])
    monkeypatch.setattr(flexible_identification, "fits_poorly", lambda _: False)

    def end(left, change):
        return SimpleNamespace(
            solution=SimpleNamespace(channels=[[None, None]], left=left, values=result.parameters + change)
        )

    best = end(-6.0, 0.0)
    limit = -6.0 + 2.0 * np.log(flexible_identification.RIVAL_RMS_RATIO)
    ends = [best, end(limit - 0.01, difference), end(limit + 0.01, 100.0 * difference)]
    wider = flexible_identification.widen_for_rivals(result, best, ends)
    grown = np.outer(shift, shift) + np.outer(difference, difference)
    np.testing.assert_allclose(wider.covariance, result.covariance + grown)
    assert "a ripple" in wider.remarks


def test_errors_are_smaller_than_those_of_the_published_method(by_camera):
    """The published method knows the clock offset and uses the best of its low-passes."""
    experiment, truth, result = by_camera
    ours = relative_errors(result, truth)
    for cutoff in (8.0, 16.0, 25.0):
        printed = printed_method(experiment, cutoff)
        column = experiment.robot.base_parameters().columns
        assert len(column) == len(printed.links)
        theirs = {
            "stiffness": printed.stiffness[0],
            "motor_inertia": printed.motor_inertia[0],
            "motor_viscous": printed.motor_viscous[0],
            "viscous": printed.viscous[0],
        }
        errors = {name: abs(value / getattr(truth, name) - 1) for name, value in theirs.items()}
        root = math.sqrt(sum(error**2 for error in errors.values()))
        assert root > 3 * math.sqrt(sum(ours[name] ** 2 for name in errors)), (cutoff, errors)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "values"),
    [("cubic", {"stiffness": 9e3, "cubic": 3e7}), ("dead_zone", {"stiffness": 1.19e4, "dead_zone": 2e-3})],
)
def test_estimates_nonlinear_springs(law, values):
    first, second = values.values()
    torque = {
        "cubic": lambda d: first * d + second * d**3,
        "dead_zone": lambda d: first * (d - min(max(d, -second), second)),
    }
    experiment = spring_experiment(2, torque[law], seconds=4.0)
    result = FlexibleJointIdentification(experiment.robot, spring=law).fit(experiment.recording)
    for name, value in values.items():
        assert result.term(name).values[0] == pytest.approx(value, rel=0.02)
    inertia = result.parameters[result.names.index("Iyy1")]
    assert inertia == pytest.approx(experiment.truth.inertia, rel=0.01)
    assert result.term("motor_inertia").values[0] == pytest.approx(experiment.truth.motor_inertia, rel=0.03)


@pytest.mark.slow
def test_linear_fit_of_a_cubic_spring_suggests_other_laws():
    experiment = spring_experiment(2, lambda d: 3e3 * d + 5e8 * d**3, seconds=3.0)
    result = FlexibleJointIdentification(experiment.robot).fit(experiment.recording)
    assert any("--spring auto tries them" in remark for remark in result.remarks)
    # A fit so poor that the stiffness is undetermined must suggest another law too, not a rigid joint.
    index = result.layout.index("stiffness")[0]
    covariance = result.covariance.copy()
    covariance[index, index] = (10 * result.parameters[index]) ** 2
    (remark,) = [r for r in remarks(replace(result, covariance=covariance)) if "stiffness is not determined" in r]
    assert "it is not rigid" in remark
    assert "--spring cubic" in remark
    assert "take the joint as rigid" not in remark


@pytest.mark.slow
def test_fits_several_recordings_with_separate_clocks():
    """`fit` uses all recordings together, `repeat` each separately."""
    first, second = (spring_experiment(2, seconds=3.0, noise=noise).recording for noise in (1.0, 0.5))
    robot = pa10.single_joint_robot(2)
    second = replace(second, source="second.csv")
    identification = FlexibleJointIdentification(robot)
    together = identification.fit(first, second)
    assert [run.source for run in together.runs] == ["joint_2.csv", "second.csv"]
    alone = identification.repeat(first, second)
    assert [result.sources for result in alone] == [("joint_2.csv",), ("second.csv",)]
    errors = [result.standard_errors[result.names.index("stiffness joint_2")] for result in (*alone, together)]
    assert errors[1] < errors[0]
    assert errors[2] < min(errors[:2])
    truth = pa10.table_one(2)
    assert together.stiffness[0] == pytest.approx(truth.stiffness, rel=0.03)


BAD_SETTINGS = [
    ({"clock": "slow"}, "clock is 'slow'"),
    ({"motor_terms": ("motor_inertia", "motor_mass")}, "no term motor_mass; expected motor_inertia"),
    ({"spring": "quadratic"}, "'quadratic' for joint 'joint_2'; expected one of linear, cubic, dead_zone"),
    ({"spring": {"joint_9": "linear"}}, "joint 'joint_9'; .*joint_2"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS)
def test_refuses_unknown_settings(settings, message):
    with pytest.raises(IdentificationError, match=message):
        FlexibleJointIdentification(pa10.single_joint_robot(2), **settings)


def changed(recording, **fields):
    return replace(recording, source="bench.csv", **fields)


BAD_RECORDINGS = {
    "copied": (lambda r: changed(r, link_position=r.position.copy()), "bench.csv: joint 'joint_2'.*those of its motor"),
    "no links": (lambda r: changed(r, link_position=None), "bench.csv: no positions of links"),
    "no torque": (lambda r: changed(r, torque=np.full_like(r.torque, np.nan)), "(?s)bench.csv.*torque"),
    "no joint": (lambda r: changed(r, joint_names=("elbow",)), "(?s)bench.csv.*joint_2"),
    "at rest": (lambda r: changed(r, position=np.full_like(r.position, 0.3)), "bench.csv"),
}


@pytest.mark.parametrize("fault", BAD_RECORDINGS)
def test_refuses_bad_recordings(fault, by_camera):
    change, message = BAD_RECORDINGS[fault]
    with pytest.raises(DynidError, match=message):
        FlexibleJointIdentification(by_camera.experiment.robot).fit(
            change(by_camera.experiment.recording_with_encoders)
        )


def test_refuses_wrong_numbers_of_links_or_recordings(by_camera):
    experiment = by_camera.experiment
    identification = FlexibleJointIdentification(experiment.robot)
    with pytest.raises(IdentificationError, match="at least one recording"):
        identification.fit()
    with pytest.raises(IdentificationError, match="links are given for 1 of 2"):
        identification.fit(experiment.recording, experiment.recording, links=experiment.links)


def test_refuses_mirrored_links_and_another_robot(by_camera):
    experiment = by_camera.experiment
    mirrored = replace(experiment.links, position=-experiment.links.position)
    with pytest.raises(DynidError, match=r"experiment: joints joint_2: .*wrong sign"):
        FlexibleJointIdentification(experiment.robot).fit(experiment.recording, links=mirrored)
    with pytest.raises(DynidError, match=r"(?s)experiment.*joint_1"):
        FlexibleJointIdentification(RobotModel.from_urdf(pa10.arm_urdf())).fit(experiment.recording)
