"""Identification of base parameters, links and friction from motion (Atkeson, An and Hollerbach 1986)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.checks.geometry import best_gravity
from dynid_ros.errors import IdentificationError
from dynid_ros.identification.equations import LinkEquations, SampleEquations
from dynid_ros.identification.gravity_direction import (
    CONVERGENCE_ANGLE_RAD,
    MAX_ITERATIONS,
    direction_setting,
    imu_direction,
    imu_topic_setting,
    require_determined,
    turn_information,
)
from dynid_ros.identification.links.friction_choice import refuse_unseen
from dynid_ros.identification.links.link_estimators import (
    ERROR_KINDS,
    ESTIMATORS,
    BaseFit,
    ErrorModel,
    LinkFit,
    estimate_base_parameters,
    estimate_links,
)
from dynid_ros.identification.links.link_result import LinkResult, undetermined_remarks
from dynid_ros.identification.links.link_structure import (
    EQUATIONS,
    LinkData,
    LinkStructure,
    choose_columns,
    prepare_data,
)
from dynid_ros.identification.links.load_step import require_one_load
from dynid_ros.identification.links.structure_choice import choose_coupling, choose_with_filter
from dynid_ros.identified.gravity_direction import ESTIMATED, GIVEN, IMU
from dynid_ros.identified.links import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.friction_terms import FRICTION_TERMS, friction_terms
from dynid_ros.model.gravity import angle_between
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording.recording import Recordings
from dynid_ros.recording.uniform_motion import MIN_CUTOFF_HZ, MOTION_CUTOFF_RATIO, LinkSignals
from dynid_ros.settings import check, setting
from dynid_ros.signals.driver_filter import AUTO, DriverFilter, driver_filter

NO_GRAVITY_DIRECTION = ("huber", "sequential")
"""Estimators that cannot estimate a direction of gravity."""
GRAVITY_STEP_TOLERANCE = 0.02
"""Largest last step of the direction of gravity, as a fraction of its confidence interval."""

MAX_STRUCTURE_SAMPLES = 10_000
"""Number of equations of a joint that suffices to choose coupled joints, friction and the filter of the driver, and to
find a change of load."""


@dataclass
class LinkIdentification:
    """Least-squares fit of Y(q, q̇, q̈) x = τ: torques of rigid links, rotors and friction, linear in their parameters.

    Attributes:
        robot: kinematics and gravity, with nominal parameters.
        friction: friction terms of the joints, a JointFriction or a FrictionModel; "auto": chosen per joint by the
            held-out loss.
        coupled: pairs of names of coupled joints, unless a FrictionModel has them; empty: detected where friction is
            chosen.
        estimator: "consistent": physically consistent links, regularized towards the URDF's (Lee, Wensing and Park
            2019); "weighted": least squares with each joint weighted by its noise; "ordinary": least squares; "huber":
            weighted, and outliers count less; "sequential": one joint after the other, from tip to base (Khosla and
            Kanade 1987); "error_model": minimum change of the URDF's parameters (ibid.); "ridge" and "minimum_norm": as
            in Atkeson, An and Hollerbach 1986.
        equations: "filtered": torque and regressor through the same low-pass; "integral": integrated over windows,
            without accelerations (Atkeson, An and Hollerbach 1986); it needs given friction.
        prior_weight: weight of the URDF in "consistent" (None: by cross-validation) and "ridge" (None: 10).
        torque_gain_error: standard deviation of the relative error of each joint's torque gain. It moves all parameters
            of a joint in proportion, so no residual shows it.
        torque_filter: filter that the driver applied to the torque, and that the model passes too; None: no filter;
            "auto": the low-pass that predicts held-out samples better than any model without it, if there is one.
        gravity_direction: "given": direction of the robot; "estimated": estimated with the links, whose intervals allow
            for it; "imu": by the recordings' `sensor_msgs/Imu`.
        imu_topic: topic of the IMU; empty: the only one.
        cutoff, motion_cutoff: cutoff frequencies of the low-pass filters, Hz, see `LinkSignals`; None: chosen from the
            motion.
        errors: errors that standard errors allow for. "robust": residuals that are correlated in time and wherever the
            motion repeats, as in every recording. "white": noise that is independent from sample to sample before it is
            filtered; for a recording these errors are half of the true ones.
    """

    robot: RobotModel
    friction: FrictionModel | JointFriction | Literal["auto"] = setting(
        "auto",
        "friction terms of all joints: auto, chosen for each by the prediction of held-out samples; none; or some of "
        f"{', '.join(FRICTION_TERMS)} with commas between, as in coulomb,viscous,stribeck_velocity=0.1",
        symbol="TERMS",
        read=friction_terms,
    )
    coupled: Sequence[tuple[str, str]] = setting(
        (), "pair of joints that one motor drives; default: found where friction is chosen", parts=("A", "B")
    )
    estimator: str = setting(
        "consistent",
        "estimator: consistent, physically consistent links regularised towards the URDF; weighted (by the noise of "
        "each joint), ordinary, huber, least squares; others of papers, see docs/links.md",
        choices=ESTIMATORS,
    )
    equations: str = setting(
        "filtered",
        "equations: filtered, all signals through one low-pass; integral, without accelerations, needs friction terms",
        choices=EQUATIONS,
    )
    prior_weight: float | None = setting(
        None, "weight of the URDF's links; default: chosen by cross-validation; 10 for ridge", above=0, symbol="W"
    )
    errors: str = setting("robust", "what standard errors allow for", choices=ERROR_KINDS, offered=False)
    torque_gain_error: float = setting(
        0.01,
        "standard deviation of the relative error of each joint's torque gain, which no residual shows",
        least=0,
        symbol="S",
    )
    torque_filter: DriverFilter | str | None = setting(
        AUTO,
        "filter of the driver on the torque: auto, a low-pass where it predicts held-out samples better; none; or "
        "some of cutoff=HZ, order=N, delay=S, zero_phase with commas between",
        symbol="FILTER",
        read=driver_filter,
    )
    gravity_direction: str = direction_setting()
    imu_topic: str = imu_topic_setting()
    cutoff: float | None = setting(
        None,
        "cutoff frequency of torques and equations; default: chosen from the motion",
        unit="Hz",
        least=0,
        symbol="HZ",
    )
    motion_cutoff: float | None = setting(
        None, "cutoff frequency of the positions; default: chosen from the motion", unit="Hz", least=0, symbol="HZ"
    )

    def __post_init__(self) -> None:
        check(self, IdentificationError)
        if self.friction != "auto" and not isinstance(self.friction, (FrictionModel, JointFriction)):
            raise IdentificationError(
                f"friction is {self.friction!r}; expected 'auto', a JointFriction or a FrictionModel"
            )
        given = isinstance(self.torque_filter, DriverFilter)
        if not given and self.torque_filter not in (AUTO, None):
            raise IdentificationError(
                f"torque_filter is {self.torque_filter!r}; expected '{AUTO}', None or a DriverFilter"
            )
        if given and self.equations == "integral":
            raise IdentificationError("torque_filter: the integral form has none; use equations 'filtered'")
        plain = self.equations == "filtered" and self.estimator not in NO_GRAVITY_DIRECTION
        if self.gravity_direction != GIVEN and not plain:
            raise IdentificationError(
                f"gravity_direction {self.gravity_direction} needs equations 'filtered' and another estimator than "
                f"{' or '.join(NO_GRAVITY_DIRECTION)}"
            )
        if isinstance(self.friction, FrictionModel) and self.coupled:
            raise IdentificationError("coupled joints are given besides a FrictionModel; give them in it")

    def fit(self, *recordings: Recordings) -> LinkResult:
        """Identify from one or more recordings, or files of these.

        Raises:
            RecordingError: a joint of the model is not in a recording.
            IdentificationError: no motion, no torque, or fewer samples than parameters.
        """
        if not recordings:
            raise IdentificationError("fit needs at least one recording")
        return self._identify(self._prepare(recordings))

    def require_one_load(self, *recordings: Recordings) -> None:
        """Raise an error if the load changes within or between recordings; of long ones a part suffices.

        Raises:
            LoadChangeError: the load changed.
            RecordingError, IdentificationError: as in `fit`.
        """
        self._fit_base(self._prepare(recordings).thinned(MAX_STRUCTURE_SAMPLES))

    def fit_samples(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, torque: ArrayLike) -> LinkResult:
        """Identify from samples (N, n) each that need no filter, in flat memory; "huber" keeps all residuals.

        Raises:
            ModelError: arrays of unlike shapes.
            IdentificationError: no samples, values that are not finite, or fewer samples than parameters.
        """
        if self.gravity_direction == IMU:
            raise IdentificationError("samples have no IMU; identify from recordings, or give the direction")
        with_kinds = self.errors == "robust"
        equations: SampleEquations[LinkColumns] = SampleEquations(self.robot, q, qd, qdd, torque, kinds=with_kinds)
        cutoff = self.cutoff or MIN_CUTOFF_HZ
        motion_cutoff = self.motion_cutoff or MOTION_CUTOFF_RATIO * cutoff
        reason = f"samples are taken as given; recordings to compare with pass a low-pass at {cutoff:g} Hz"
        return self._identify(LinkData(self.robot, equations, LinkSignals(cutoff, motion_cutoff, reason), ("samples",)))

    def _prepare(self, recordings: Sequence[Recordings]) -> LinkData:
        cutoffs = self.cutoff, self.motion_cutoff
        return prepare_data(self.robot, recordings, self.equations, cutoffs, self.torque_filter)

    def _identify(self, data: LinkData) -> LinkResult:
        structure, base = self._fit_base(data)
        links = estimate_links(structure, base, self.estimator, self.prior_weight)
        return self._make_result(structure, base, links)

    def _fit_base(self, data: LinkData) -> tuple[LinkStructure, BaseFit]:
        """Return the structure and the base parameters of data with one load and a definite direction of gravity.

        If friction is chosen, a part of the equations of a long recording decides on the structure.
        """
        structure = self._choose_structure(data.thinned(MAX_STRUCTURE_SAMPLES) if self.friction == "auto" else data)
        if self.torque_filter == AUTO and self.equations == "filtered" and data.recordings:
            structure = choose_with_filter(structure, self._choose_structure)
        structure = structure.with_samples(data.max_samples)
        base = estimate_base_parameters(structure, self.estimator, self._error_model)
        require_sound_data(structure, base)
        return structure, base

    @property
    def _error_model(self) -> ErrorModel:
        return ErrorModel(self.errors, self.torque_gain_error)

    def _choose_structure(self, data: LinkData) -> LinkStructure:
        """Choose coupled joints, direction of gravity and friction for data with a given filter of the driver.

        Each choice precedes those that depend on it: coupling is visible with the simplest friction, and the direction
        of gravity hardly depends on friction, while friction is judged by residuals without either error.
        """
        robot = data.robot
        coupled = self.coupled
        remarks: tuple[str, ...] = ()
        if self.friction == "auto" and not coupled:
            coupling = choose_coupling(robot, data.equations)
            coupled = tuple(coupling.gains)
            remarks = coupling.remarks
        pairs = FrictionModel.by_name(robot, {}, coupled=coupled).coupled
        friction = self.friction
        if isinstance(friction, JointFriction):
            friction = FrictionModel(friction, pairs, robot.parameters)
        if isinstance(friction, FrictionModel):
            refuse_unseen(robot, friction, data.equations.motion, ", ".join(data.sources))
        direction = None
        turned_links = None
        if self.gravity_direction == ESTIMATED:
            robot, turned_links = self._estimate_gravity(data, friction, pairs)
        elif self.gravity_direction == IMU:
            direction = imu_direction(robot, data.recordings, self.imu_topic)
            robot = robot.with_gravity(direction.gravity)
            level = choose_columns(robot, data, friction, pairs)
            turned_links = estimate_base_parameters(level, "weighted", self._error_model).links
        structure = choose_columns(robot, data, friction, pairs, turned_links=turned_links, imu_direction=direction)
        return replace(structure, remarks=(*structure.remarks, *remarks)) if remarks else structure

    def _estimate_gravity(
        self, data: LinkData, friction: FrictionModel | Literal["auto"], pairs: Sequence[tuple[int, int]]
    ) -> tuple[RobotModel, NDArray]:
        """Return the arm with the direction of gravity that fits best, and the links (10 n,) that gravity turns.

        Gauss-Newton steps of two angles, each of which solves for all other parameters as well. The start is the
        direction that the check of recordings finds. Friction is chosen once, at the start.
        """
        robot = data.robot
        selected = [recording.select(robot.joint_names) for recording in data.recordings]
        start = best_gravity(selected, robot) if selected else None
        robot = robot if start is None else robot.with_gravity(start)
        structure = choose_columns(robot, data, friction, pairs)
        base = estimate_base_parameters(structure, "weighted", self._error_model)
        friction = structure.friction
        for _ in range(MAX_ITERATIONS):
            structure = choose_columns(robot, data, friction, turned_links=base.links)
            base = estimate_base_parameters(structure, "weighted", self._error_model)
            assert base.direction is not None
            step = angle_between(base.direction.gravity, robot.gravity)
            robot = data.robot.with_gravity(base.direction.gravity)
            if step < max(CONVERGENCE_ANGLE_RAD, GRAVITY_STEP_TOLERANCE * base.direction.widest):
                break
        return robot, base.links

    def _make_result(self, structure: LinkStructure, base: BaseFit, links: LinkFit) -> LinkResult:
        robot = structure.robot
        data = structure.data
        friction = structure.friction
        n_links = robot.parameters.size
        direction = base.direction
        if direction is not None and structure.estimates_gravity:
            direction = replace(direction, given=self.robot.gravity, gravity=robot.gravity)
        weight_remark = [f"weight of the URDF {links.weight.weight:g}"] if self.estimator == "consistent" else []
        return LinkResult(
            model=LinkModel(robot, links.solution[:n_links], friction, links.solution[n_links:], data.signals),
            urdf_model=LinkModel(
                robot, links.urdf_solution[:n_links], friction, links.urdf_solution[n_links:], data.signals
            ),
            base=structure.base,
            base_parameters=base.estimate,
            condition_number=base.condition_number,
            noise=base.noise,
            residual_rms=links.residual_rms,
            torque_rms=structure.base_problem.torque_rms(),
            urdf_residual_rms=links.urdf_residual_rms,
            n_samples=int(structure.factors.counts.sum()),
            sources=data.sources,
            settings={
                "estimator": str(self.estimator),
                "equations": str(self.equations),
                "errors": self.errors,
                "friction": "auto" if self.friction == "auto" else "given",
                "prior_weight": float(links.weight.weight),
                "torque_gain_error": float(self.torque_gain_error),
            },
            remarks=(
                *structure.remarks,
                *weight_remark,
                *base.remarks,
                *undetermined_remarks(structure.base, base.estimate),
            ),
            scores=links.weight.scores,
            direction=direction,
            base_links=base.links,
            links_covariance=links.covariance,
            ranges=data.ranges,
        )


def require_sound_data(structure: LinkStructure, base: BaseFit) -> None:
    """Refuse recordings with a change of load, or a direction of gravity that they do not determine.

    Raises:
        LoadChangeError: the load changed within or between the recordings.
        IdentificationError: gravity may point in too many directions.
    """
    data = structure.data
    if isinstance(data.equations, LinkEquations):
        require_one_load(
            structure.robot,
            data.equations,
            structure.base_problem,
            structure.base,
            noise=base.noise,
            sources=data.sources,
        )
    if structure.estimates_gravity and base.direction is not None:
        columns, turns = np.split(structure.turned_problem.stacked(base.noise)[0], [len(structure.independent)], axis=1)
        poses = np.concatenate([position for position, *_ in data.equations.motion])
        information = turn_information(columns, turns)
        require_determined(information, base.direction, structure.robot, base.links, poses, noise=base.noise)
