"""Calibration of joint torque sensors in the arm, by known weights: gains and offsets.

Ma and Hollerbach 1996, "Identifying mass parameters for gravity compensation and automatic torque sensor calibration",
and Ma, Hollerbach and Xu 1994, "Gravity based autonomous calibration of robot manipulators". Here the torques of all
joints in all poses are fitted at once.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.checks.channels import check_channels
from dynid_ros.checks.finding import CLIPPED, CONSTANT, CheckSettings
from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.identification.static_samples import (
    DIFFERENCE,
    HOLD_TOLERANCE,
    SUM,
    SampleRules,
    Samples,
    static_samples,
    with_known_torque,
)
from dynid_ros.identification.torque_sensors.torque_sensor_fit import fit_torque_sensors
from dynid_ros.identification.torque_sensors.torque_sensor_model import (
    ANY_GAIN,
    GAIN_RANGE,
    ReferenceMass,
    TorqueSensorModel,
    check_gain_range,
    check_gains,
    check_mass_is_seen,
)
from dynid_ros.identification.torque_sensors.torque_sensor_result import COLLINEAR_INFLATION, TorqueSensorResult
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import Recordings, read_all
from dynid_ros.settings import setting

MAX_UNEXPLAINED_FRACTION = 0.03
"""Residual of a joint, as a fraction of its readings' range, up to which the model explains the readings, …"""
MIN_REPEATED_RATIO = 5.0
"""… and ratio to the difference between the two approaches of a pose (which does not depend on gravity) up to which
the residual may be noise."""

LOADED_FRACTION = 0.5
"""Fraction of the largest gravity torque of all joints above which a joint counts as strongly loaded."""


@dataclass
class TorqueSensorCalibration:
    """Fit of reading = τ / gain + offset + Coulomb friction to dwells, where τ is the torque of gravity.

    The scale of the readings comes from a reference mass that is attached in some recordings only, or from known
    gravity parameters. Without either, no gain is determined. Kinematics and gravity direction are those of the robot.

    Attributes:
        robot: kinematics and gravity; its inertias are not used.
        reference_mass: weight of the mass that is attached in the recordings with mass, kg; None: no mass.
        reference_center: (3,) centre of the mass in the frame of the tip link, m; None: unknown and estimated.
        gravity: known moments of the arm without the mass; None: unknown and estimated.
        estimate_positions: whether gains and offsets of the position sensors are unknown too.
        rules: criteria for dwells.
        gain_range: lowest and highest possible gain of a sensor, N m per unit of the reading; other gains are refused.
            For currents any gain, or the range of all motors with its sign.
        currents: whether the readings are motor currents, A; gains are then the motors' torque constants at the joints.

    Raises:
        IdentificationError: a mass that is not positive, a centre without a mass, moments of another robot, or an empty
            range.
    """

    robot: RobotModel
    reference_mass: float | None = setting(
        None, "mass that is attached in the recordings with mass; default: none", unit="kg", symbol="KG"
    )
    reference_center: ArrayLike | None = setting(
        None,
        "centre of the reference mass in the frame of the tip link; default: estimated",
        unit="m",
        parts=("X", "Y", "Z"),
    )
    gravity: KnownGravity | None = None
    estimate_positions: bool = setting(
        False,
        "estimate gains and offsets of the position sensors too; needs several poses of each joint's neighbours",
    )
    rules: SampleRules = field(default_factory=SampleRules)
    gain_range: tuple[float, float] = setting(
        GAIN_RANGE,
        "gains that a sensor may have, lowest and highest, N m per unit of the reading; others are refused; give those "
        "of all motors where readings are currents",
        parts=("LOWEST", "HIGHEST"),
    )

    currents: bool = False

    def __post_init__(self) -> None:
        check_gain_range(self.gain_range)
        if self.currents and tuple(self.gain_range) == GAIN_RANGE:
            self.gain_range = ANY_GAIN
        if self.reference_mass is None and self.reference_center is not None:
            raise IdentificationError("reference_center is given without reference_mass; give the mass in kg too")
        center = None if self.reference_center is None else tuple(np.asarray(self.reference_center, float).tolist())
        self._mass = None if self.reference_mass is None else ReferenceMass(self.reference_mass, center)
        names = GravityModel(self.robot).names
        if self.gravity is not None and self.gravity.moments.shape != (len(names),):
            raise IdentificationError(
                f"gravity: {self.gravity.moments.size} moments; robot '{self.robot.name}' has {len(names)}: "
                f"{', '.join(names)}"
            )

    def fit(
        self,
        recordings: Recordings,
        with_mass: Recordings = (),
    ) -> TorqueSensorResult:
        """Calibrate the sensors from the dwells in recordings.

        Undetermined values raise no error; the result names them.

        Args:
            recordings: recordings without the reference mass; may be empty if gravity is known and there is a mass.
            with_mass: recordings with the reference mass.

        Raises:
            RecordingError: a joint of the robot is not in a recording, or a reading is stuck at the end of its range.
            IdentificationError: recordings that the settings require are missing, there are no dwells, no joint moved,
                the mass does not show in the readings, or gains are outside the range.
        """
        plain, loaded = (read_all([given], self.robot.joint_names) for given in (recordings, with_mass))
        self._check_given(plain, loaded)
        samples = Samples.join([self._dwells(recording) for recording in (*plain, *loaded)])
        is_loaded = samples.part >= len(plain)
        return self.fit_samples(samples, is_loaded, tuple(recording.source for recording in (*plain, *loaded)))

    def fit_samples(self, samples: Samples, loaded: NDArray, sources: Sequence[str] = ()) -> TorqueSensorResult:
        """Calibrate the sensors from extracted dwells.

        Args:
            samples: M dwells, with readings as torque; NaN for a missing reading.
            loaded: (M,) mask of dwells with the reference mass.
            sources: names of the recordings.

        Raises:
            IdentificationError: see `fit`.
        """
        loaded = np.asarray(loaded, bool)
        self._check_given(np.flatnonzero(~loaded), np.flatnonzero(loaded))
        self._check_moved(samples)
        model = TorqueSensorModel(self.robot, samples, loaded, self._mass, self.gravity, self.estimate_positions)
        result = TorqueSensorResult(model, fit_torque_sensors(model), tuple(sources), self._settings())
        _check_explained(result)
        check_mass_is_seen(model)
        check_gains(result, self.gain_range)
        return replace(result, remarks=tuple(_remarks(result)))

    def _check_given(self, plain: Sized, loaded: Sized) -> None:
        if self._mass is None and len(loaded):
            raise IdentificationError("recordings with a mass, but no reference_mass; give its weight in kg")
        if self._mass is not None and not len(loaded):
            raise IdentificationError(
                f"reference_mass is {self._mass.mass:g} kg, but no recording was made with it "
                "attached; give one, or no mass"
            )
        if self.gravity is None and not len(plain):
            raise IdentificationError(
                "no recording without the reference mass: the arm's own weight is not known, so both are needed; "
                "record the same motion without it, or give the gravity parameters"
            )

    def _dwells(self, recording: Recording) -> Samples:
        selected = with_known_torque(recording.select(self.robot.joint_names))
        self._check_readings(selected)
        samples = static_samples(selected, self.rules)
        if not len(samples):
            raise IdentificationError(
                f"{recording.source}: no dwells; record rests of at least {self.rules.minimum_dwell:g} s in many "
                "poses, as `dynid excite` plans them"
            )
        return samples

    def _check_readings(self, recording: Recording) -> None:
        weighed = ~GravityModel(self.robot).unobservable_axes()
        # Velocities are removed, since faults of their channels do not matter for dwells.
        still = replace(recording, velocity=np.full_like(recording.velocity, np.nan))
        for finding in check_channels(still, CheckSettings()):
            joints = [
                joint
                for joint, loaded in zip(self.robot.joint_names, weighed, strict=True)
                if loaded and finding.where.endswith(f"'{joint}'")
            ]
            if finding.kind == CLIPPED or (finding.kind == CONSTANT and joints):
                raise RecordingError(str(finding))

    def _check_moved(self, samples: Samples) -> None:
        if not len(samples):
            raise IdentificationError("no dwells in the recordings; record rests in many poses")
        span = np.ptp(samples.position, axis=0)
        if not np.any(span > HOLD_TOLERANCE):
            raise IdentificationError(
                f"no joint moved between the {len(samples)} dwells (largest change: {np.max(span):.3g}); turn the "
                "joints that gravity loads, one after the other, as `dynid excite` plans it"
            )

    def _settings(self) -> dict:
        return {
            **({"effort_convention": "motor_current"} if self.currents else {}),
            "reference_mass": self.reference_mass,
            "reference_center": None if self._mass is None or self._mass.center is None else list(self._mass.center),
            "gravity": None if self.gravity is None else self.gravity.source,
            "estimate_positions": self.estimate_positions,
            "gain_range": list(self.gain_range),
        }


def _unexplained(result: TorqueSensorResult) -> list[int]:
    """Return the joints whose readings repeat well but contradict the gravity of this robot."""
    noise = result.fit.noise
    size = result.model.reading_range
    kinds = [(noise.get(f"{joint}, {SUM}"), noise.get(f"{joint}, {DIFFERENCE}")) for joint in result.joint_names]
    return [
        j
        for j, (both, apart) in enumerate(kinds)
        if both is not None
        and apart is not None
        and both > max(MAX_UNEXPLAINED_FRACTION * size[j], MIN_REPEATED_RATIO * apart)
    ]


def _check_explained(result: TorqueSensorResult) -> None:
    """Refuse readings that gravity does not explain in a strongly loaded joint, as all estimates would be wrong."""
    strange = _unexplained(result)
    torque = np.ptp(result.model.at(result.fit.values).torque, axis=0)
    if np.any(torque[strange] > LOADED_FRACTION * torque.max()):
        raise IdentificationError(
            f"the readings of {', '.join(result.joint_names[j] for j in strange)} do not follow the gravity torque of "
            f"robot '{result.model.robot.name}', though they repeat themselves: another robot or tool, another order "
            "of joints, kinematics or gravity direction, positions that need estimate_positions, or a mass that moved"
        )


def _remarks(result: TorqueSensorResult) -> list[str]:
    remarks = []
    if result.model.known is not None:
        remarks.append(
            f"gains are relative to the gravity parameters ({result.model.known.source}): if those came from "
            "these sensors before a calibration, they hold the same errors"
        )
    strange = [result.joint_names[j] for j in _unexplained(result)]
    if strange:
        remarks.append(
            f"the readings of {', '.join(strange)} repeat themselves better than gravity explains them: a cable, a "
            "spring, a sensor that is not linear or feels other joints; the intervals count that as noise"
        )
    odd = [f"{joint} ({count})" for joint, count in zip(result.joint_names, result.fit.left_out, strict=True) if count]
    if odd:
        remarks.append(
            "pairs of dwells left out, because the readings of their two approaches differ by other than friction: "
            f"{', '.join(odd)}; if there are many, the joint swings back where it stops: move slower, or give the "
            "controller the load"
        )
    names = result.names
    inflated = [
        f"{names[i]} ({result.fit.inflation[i]:.0f})"
        for i in np.flatnonzero(np.isfinite(result.fit.inflation) & (result.fit.inflation > COLLINEAR_INFLATION))
        if names[i] not in result.reasons
    ]
    if inflated:
        remarks.append(f"collinear, which amplifies errors of the model: {', '.join(inflated)}; more poses would help")
    return remarks
