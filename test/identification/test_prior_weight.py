"""The prior weighs much where it is right or data are poor, and little where it is wrong and data are rich."""

import numpy as np
import pytest
from link_problems import Drive, Fourier, chain, record, ur10, wrong

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.normal_equations import LinkProblem
from dynid_ros.identification.equations import LinkEquations
from dynid_ros.identification.links import link_regularization as prior_weight
from dynid_ros.identification.links.link_regularization import DEFAULT_WEIGHT, WEIGHTS, FullProblem, choose_weight
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording.uniform_motion import LinkSignals

FRICTION = JointFriction(offset=True, smoothing=0.02)


def problem(nominal, recordings) -> FullProblem:
    columns = LinkColumns(nominal, [(FRICTION,)] * nominal.n_joints)
    factors = LinkEquations(LinkSignals(7.0, 17.5), recordings).factors(columns)
    everything = LinkProblem(factors, columns.chosen([0] * nominal.n_joints))
    nonnegative = columns.nonnegative([0] * nominal.n_joints)
    return FullProblem(everything, everything.weighted()[1], nominal.parameters, nonnegative)


def run(robot, duration, noise, seed=0):
    return record(robot, Fourier(robot.n_joints, seed, size=0.6), Drive(), duration=duration, noise=noise, seed=seed)


def test_much_where_the_urdf_is_right_and_data_are_poor():
    found = choose_weight(problem(ur10(), [run(ur10(), 5.0, 5.0)]))
    assert found.weight >= 1e4
    assert list(found.scores) == list(WEIGHTS)


def test_little_where_it_is_wrong_and_data_are_rich():
    nominal = wrong(ur10())
    found = choose_weight(problem(nominal, [run(ur10(), 20.0, 0.05), run(ur10(), 20.0, 0.05, 1)]))
    assert found.weight <= 1e3
    assert found.scores[1.0] < found.scores[1e5] - 0.5


def test_the_largest_of_those_next_to_the_best():
    found = choose_weight(problem(wrong(chain()), [run(chain(), 20.0, 1.0)]))
    best = min(found.scores.values())
    near = [weight for weight, score in found.scores.items() if score <= best + 0.05]
    assert found.weight == max(near)


def test_the_chosen_weight_predicts_another_motion_better_than_extremes():
    nominal, recordings = wrong(ur10(), 0.15), [run(ur10(), 6.0, 2.0)]
    full = problem(nominal, recordings)
    other = problem(nominal, [run(ur10(), 20.0, 0.0, 7)])
    chosen = choose_weight(full).weight
    fits = full.consistent().path([WEIGHTS[0], chosen, 1e-4])
    errors = [np.log(other.problem.residual_rms(full.reduce(fit.solution))).mean() for fit in fits]
    assert errors[1] <= min(errors) + 0.05


def test_too_few_samples_to_leave_some_out():
    found = choose_weight(problem(chain(), [run(chain(), 0.9, 0.1)]))
    assert (found.weight, found.scores) == (DEFAULT_WEIGHT, {})


@pytest.mark.slow
def test_weights_that_rounding_hides_are_passed_over(monkeypatch):
    full = problem(wrong(chain()), [run(chain(), 10.0, 0.1)])
    expected = choose_weight(full)
    consistent = full.consistent

    def limited(groups=None):
        solver = consistent(groups)
        solve = solver.solve

        def refuse(weight, start=None):
            if weight < 50:
                raise IdentificationError("rounding hides the rest")
            return solve(weight, start)

        solver.solve = refuse
        return solver

    monkeypatch.setattr(full, "consistent", limited)
    found = choose_weight(full)
    assert list(found.scores) == [1e5, 1e4, 1e3, 1e2]
    assert all(found.scores[weight] == pytest.approx(expected.scores[weight]) for weight in found.scores)
    assert found.weight >= 100


def test_grid_descends():
    assert list(WEIGHTS) == sorted(WEIGHTS, reverse=True)
    assert prior_weight.TOLERATED < 0.1
