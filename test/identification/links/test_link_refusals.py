"""Test refusals of recordings and settings that do not permit an identification of links."""

from dataclasses import replace

import numpy as np
import pytest
from link_problems import PLAIN, Drive, Fourier, chain, record, run, ur10

from dynid_ros.errors import DynidError, IdentificationError, RecordingError
from dynid_ros.identification import LinkIdentification
from dynid_ros.model import FrictionModel, JointFriction
from dynid_ros.model.inertia import is_possible


class TestRefusals:
    """Refusals of a chain's recordings and of settings."""

    @staticmethod
    def refused(recording, words, error=DynidError, **settings):
        with pytest.raises(error, match=words):
            LinkIdentification(chain(), **settings).fit(*recording)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"estimator": "magic"}, "estimator is 'magic'; expected one of consistent, "),
            ({"errors": "pink"}, "errors is 'pink'; expected one of robust, white"),
            ({"equations": "differential"}, "equations is 'differential'; expected one of filtered, integral"),
            ({"friction": "Auto"}, "friction is 'Auto'; expected 'auto'"),
            ({"friction": None}, "friction is None; expected 'auto'"),
            ({"prior_weight": -1.0}, r"prior_weight is -1.0; expected a number above 0"),
            ({"prior_weight": np.nan}, "prior_weight is nan"),
            ({"prior_weight": "big"}, "prior_weight is 'big'"),
            ({"prior_weight": 0.0}, "prior_weight is 0.0; expected a number above 0"),
            ({"torque_gain_error": -0.1}, "torque_gain_error is -0.1"),
            ({"cutoff": np.inf}, "cutoff is inf"),
            ({"motion_cutoff": -3}, "motion_cutoff is -3"),
            ({"friction": FrictionModel(PLAIN), "coupled": [("joint_1", "joint_2")]}, "besides a FrictionModel"),
        ],
    )
    def test_settings(self, settings, words):
        with pytest.raises(IdentificationError, match=words):
            LinkIdentification(chain(), **settings)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"coupled": [("joint_1", "joint_9")]}, "no joint joint_9"),
            ({"coupled": [("joint_1", "joint_1")]}, "coupled joints"),
            ({"friction": FrictionModel([PLAIN] * 2)}, "for 2 joints; expected the 3"),
            ({"equations": "integral"}, "friction that is given, not 'auto'"),
            ({"cutoff": 60.0}, "cutoff is 60 Hz"),
        ],
    )
    def test_settings_that_do_not_fit_the_robot(self, settings, words):
        self.refused([run(chain())], words, **settings)

    def test_no_recordings(self):
        self.refused([], "at least one recording", IdentificationError)

    def test_joints_of_another_robot(self):
        other = record(ur10(), Fourier(6), Drive(), duration=1.0)
        self.refused([other], "run_0 lacks joint.*joint_1", RecordingError)

    @pytest.mark.parametrize("settings", [{}, {"cutoff": 5.0}])
    @pytest.mark.parametrize("noise", [0.0, 1e-5])
    def test_all_at_rest(self, settings, noise):
        rest = run(chain(), still=(0, 1, 2), position_noise=noise)
        self.refused([rest], "run_0: (no joint moves|all joints are at rest)", IdentificationError, **settings)

    @pytest.mark.parametrize("value", [np.nan, 0.0])
    def test_a_joint_without_torque(self, value):
        whole = run(chain())
        torque = whole.torque.copy()
        torque[:, 1] = value
        self.refused([run(chain(), 1), replace(whole, torque=torque)], r"run_0: .*joint_2", IdentificationError)

    @pytest.mark.parametrize("size", [1, 9, 12, 63, 64, 70, 110])
    def test_too_short(self, size):
        self.refused([run(chain()).slice(slice(0, size))], "run_0: .*record longer")

    @pytest.mark.parametrize("factor", [pytest.param(1e-6, marks=pytest.mark.slow), 1e3])
    def test_torque_in_other_units_is_fitted_or_refused(self, factor):
        whole = run(chain(), duration=10.0)
        scaled = replace(whole, torque=whole.torque * factor)
        try:
            result = LinkIdentification(chain(), friction=PLAIN).fit(scaled)
        except DynidError as error:
            assert "units" in str(error)  # noqa: PT017 - fitting is as good
        else:
            assert is_possible(result.parameters.reshape(3, 10)).all()


def test_refuses_friction_terms_that_the_motion_does_not_excite():
    recording = record(chain(), Fourier(3, size=0.6), Drive(), duration=8.0)
    with pytest.raises(IdentificationError, match="joint_1: a harmonic of its angle needs a whole period"):
        LinkIdentification(chain(), JointFriction(harmonics=(1,))).fit(recording)
    one_way = replace(recording, position=recording.position + 3.0 * recording.time[:, None] * [0, 1, 0])
    with pytest.raises(IdentificationError, match="joint_2: a sliding length shows where the joint reverses"):
        LinkIdentification(chain(), JointFriction(sliding_length=1e-3)).fit(one_way)
    with pytest.raises(IdentificationError, match="terms 'load' need accelerations"):
        LinkIdentification(chain(), JointFriction(load=True), equations="integral").fit(recording)
