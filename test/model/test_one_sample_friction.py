"""The terms of friction of one sample are those of many."""

import numpy as np
import pytest

from dynid_ros.errors import ModelError
from dynid_ros.model.friction import FrictionModel, FrictionTerms, JointFriction


def test_all_terms():
    friction = FrictionModel(
        [
            JointFriction(),
            JointFriction(offset=True, rotor_inertia=True),
            JointFriction(asymmetric=True, offset=True),
            JointFriction(smoothing=0.1, stribeck_velocity=0.3),
            JointFriction(dead_zone=0.4),
            JointFriction.none(),
            JointFriction(asymmetric=True, viscous=False, smoothing=0.2, dead_zone=0.1),
        ],
        [(4, 5), (0, 1)],
    )
    terms, rng = FrictionTerms(friction, 7), np.random.default_rng(0)
    for _ in range(100):
        v, a = rng.normal(size=(2, 7))
        v[rng.random(7) < 0.2] = 0.0
        found = np.tensordot(terms.of(v.tolist(), a.tolist()), terms.places, axes=1)
        np.testing.assert_allclose(found, friction.regressor(v[None], a[None])[0], rtol=1e-14, atol=0)


def test_no_terms():
    terms = FrictionTerms(FrictionModel(JointFriction.none()), 3)
    assert terms.of([1.0] * 3, [1.0] * 3) == ()
    assert terms.places.shape == (0, 3, 0)


def test_nan_stays_nan():
    assert np.isnan(FrictionTerms(FrictionModel(), 1).of([np.nan], [0.0])).all()


def test_another_number_of_joints():
    with pytest.raises(ModelError, match="2 joints"):
        FrictionTerms(FrictionModel([JointFriction()] * 2), 3)
