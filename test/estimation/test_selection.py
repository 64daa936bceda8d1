"""Test forward selection of models with predefined losses."""

import numpy as np

from dynid_ros.estimation.cross_validation import ForwardSelection


class Folds:
    """Folds whose losses are logarithms; gains have a standard error of 0.1."""

    @staticmethod
    def gain(before, after):
        return float(np.sum(before - after)), 0.1


def test_selects_the_best_model_while_its_gain_suffices():
    losses = {"a": np.zeros((1, 2)), "b": np.array([[-1.0, 0.0]]), "c": np.array([[-2.0, 0.5]])}
    selection = ForwardSelection(Folds(), lambda models: [losses[model] for model in models], "a")
    gains, taken = selection.try_models(["b", "c"], lambda _, error: 5 * error)
    assert taken == 1
    assert selection.model == "c"
    np.testing.assert_allclose(np.concatenate(gains), [1.0, 1.5])
    assert selection.try_models(["b"], lambda _, error: 5 * error)[1] is None
    assert selection.model == "c"


def test_each_group_of_joints_must_gain():
    losses = {"a": np.zeros((1, 2)), "b": np.array([[-1.0, -1.0]]), "c": np.array([[-9.0, 0.5]])}
    selection = ForwardSelection(Folds(), lambda models: [losses[model] for model in models], "a")
    _, taken = selection.try_models(["c", "b"], lambda _, error: error, lambda _: [[0], [1]])
    assert taken == 1


def test_accepts_an_empty_list_of_candidates():
    selection = ForwardSelection(Folds(), lambda models: [np.zeros((1, 1))] * len(models), "a")
    assert selection.try_models([], lambda _, error: error) == ([], None)
