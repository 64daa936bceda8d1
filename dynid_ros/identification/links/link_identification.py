"""Inertial parameters and friction of all links from motion (Atkeson, An and Hollerbach 1986), physically possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import gain_shifts, robust_covariance, white_covariance, widened
from dynid_ros.estimation.cross_validation import FoldGrams
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.equations import LinkEquations, SampleEquations
from dynid_ros.identification.gravity_direction import (
    ROUNDS,
    SETTLED,
    direction_of_fit,
    direction_setting,
    imu_direction,
    imu_topic_setting,
    require_determined,
    turn_covariance,
    turn_information,
)
from dynid_ros.identification.integral_equations import IntegralEquations
from dynid_ros.identification.links.coupling_choice import choose_coupling
from dynid_ros.identification.links.friction_choice import (
    FrictionMenu,
    choose_friction,
    falling_joints,
    friction_menus,
    refuse_unseen,
)
from dynid_ros.identification.links.link_estimators import ESTIMATORS, UNBIASED, estimate_all, estimate_base
from dynid_ros.identification.links.link_regularization import FullProblem, PriorWeight, choose_weight
from dynid_ros.identification.links.link_result import LinkResult, beyond_the_arm, what_is_open
from dynid_ros.identification.links.load_step import require_one_load
from dynid_ros.identification.links.torque_filter_choice import choose_torque_filter
from dynid_ros.identified.gravity_direction import ESTIMATED, GIVEN, IMU, GravityDirection
from dynid_ros.identified.links import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.friction import FRICTION_TERMS, FrictionModel, JointFriction, friction_terms
from dynid_ros.model.gravity_direction import angle_between
from dynid_ros.model.inertia import possible_prior
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.model.urdf import LARGEST
from dynid_ros.recording import Recording
from dynid_ros.recording.checks.hypotheses import best_gravity
from dynid_ros.recording.recording import Recordings, read_all
from dynid_ros.recording.uniform_motion import LEAST_CUTOFF, MOTION_OVER_EQUATIONS, LinkSignals
from dynid_ros.settings import check, setting
from dynid_ros.signals.driver_filter import AUTO, DriverFilter, driver_filter

ERRORS = ("robust", "white")
OWN_COVARIANCE = ("huber", "sequential")
"""Estimators of which a direction of gravity cannot be a part."""
ENOUGH = 0.02
"""Largest last step to the direction of gravity, in parts of its interval."""
EQUATIONS: dict[str, type[LinkEquations]] = {"filtered": LinkEquations, "integral": IntegralEquations}


@dataclass
class LinkIdentification:
    """Fits Y(q, q̇, q̈) x = τ: torques of rigid links, rotors and friction, linear in their parameters.

    Attributes:
        robot: kinematics and gravity, with nominal parameters to start from.
        friction: terms of the joints, a JointFriction or a FrictionModel; "auto": chosen per joint by how well they
            predict samples left out.
        coupled: pairs of names of joints that are driven together, unless a FrictionModel has them; none: those that
            surely are, where friction is chosen.
        estimator: "consistent": physically consistent links, regularised towards the URDF's (Lee, Wensing and Park
            2019); "weighted": least squares with each joint weighted by its noise; "ordinary": least squares; "huber":
            weighted, and outliers count less; "sequential": one joint after the other, from tip to base (Khosla and
            Kanade 1987); "error_model": minimum change of the URDF's parameters (ibid.); "ridge" and "minimum_norm":
            as in Atkeson, An and Hollerbach 1986.
        equations: "filtered": torque and regressor through the same low-pass; "integral": integrated over windows,
            without accelerations (Atkeson, An and Hollerbach 1986); it needs friction that is given.
        prior_weight: of the URDF in "consistent", None: chosen by cross-validation; of "ridge", None: 10.
        torque_gain_error: standard deviation of the relative error of each joint's torque gain. It moves all parameters
            of a joint in proportion, so no residual shows it.
        torque_filter: what the driver had done to the torque, through which the model passes too; None: nothing;
            "auto": the low-pass that surely cut the motion, if one did.
        gravity_direction: "given": that of the robot; "estimated": found along with the links, whose intervals count
            it; "imu": from the recordings' `sensor_msgs/Imu`.
        imu_topic: of the recordings; empty: the only one.
        cutoff, motion_cutoff: of the low-pass filters, Hz, see `LinkSignals`; None: chosen from the motion.
        errors: what standard errors allow for: "robust": residuals that are correlated in time and wherever the motion
            repeats, as in every recording; "white": noise that is independent from sample to sample before it is
            filtered, for samples that are no recording: of one, these errors are half of what they should be.
    """

    robot: RobotModel
    friction: FrictionModel | JointFriction | Literal["auto"] = setting(
        "auto",
        "of all joints: auto, chosen for each by how well it predicts samples left out; none; or some of "
        f"{', '.join(FRICTION_TERMS)} with commas between, as in coulomb,viscous,stribeck_velocity=0.1",
        symbol="TERMS",
        read=friction_terms,
    )
    coupled: Sequence[tuple[str, str]] = setting(
        (), "joints of one motor; default: found where friction is chosen", parts=("A", "B")
    )
    estimator: str = setting(
        "consistent",
        "consistent: physically consistent links, regularised towards the URDF's; weighted (by each joint's noise), "
        "ordinary, huber: least squares; others: of the papers, see docs/links.md",
        choices=ESTIMATORS,
    )
    equations: str = setting(
        "filtered",
        "filtered: all through one low-pass; integral: without accelerations, needs friction that is given",
        choices=EQUATIONS,
    )
    prior_weight: float | None = setting(
        None, "of the URDF's links in consistent and ridge; default: by cross-validation, 10", above=0, symbol="W"
    )
    errors: str = setting("robust", "what standard errors allow for", choices=ERRORS, offered=False)
    torque_gain_error: float = setting(
        0.01,
        "standard deviation of the relative error of each joint's torque gain, which no residual shows",
        least=0,
        symbol="S",
    )
    torque_filter: DriverFilter | str | None = setting(
        AUTO,
        "what the driver did to the torque: auto, a low-pass where one surely cut the motion; none; or some of "
        "cutoff=HZ, order=N, delay=S, zero_phase with commas between",
        symbol="FILTER",
        read=driver_filter,
    )
    gravity_direction: str = direction_setting()
    imu_topic: str = imu_topic_setting()
    cutoff: float | None = setting(
        None, "low-pass of torques and equations; default: from the motion", unit="Hz", least=0, symbol="HZ"
    )
    motion_cutoff: float | None = setting(
        None, "low-pass of the positions; default: from the motion", unit="Hz", least=0, symbol="HZ"
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
        plain = self.equations == "filtered" and self.estimator not in OWN_COVARIANCE
        if self.gravity_direction != GIVEN and not plain:
            raise IdentificationError(
                f"gravity_direction {self.gravity_direction} needs equations 'filtered' and another estimator than "
                f"{' or '.join(OWN_COVARIANCE)}"
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
        given = read_all(recordings, self.robot.joint_names)
        selected = [recording.select(self.robot.joint_names) for recording in given]
        signals = LinkSignals.choose(selected, self.cutoff, self.motion_cutoff)
        driver = self.torque_filter
        if isinstance(driver, str):
            filtered = self.equations == "filtered"
            driver = choose_torque_filter(self.robot, signals, selected) if filtered else None
        signals = replace(signals, driver=driver)
        equations = EQUATIONS[self.equations](signals, selected)
        carried = _positions(selected)
        posture = {joint: float(np.median(positions)) for joint, positions in carried.items()}
        sources = tuple(recording.source for recording in given)
        arm, turned, direction = replace(self, robot=self.robot.with_posture(posture)), None, None
        arm, coupling = arm._coupled(equations)
        if self.gravity_direction == ESTIMATED:
            arm, turned = arm._along_gravity(equations, signals, sources, best_gravity(selected, arm.robot))
        elif self.gravity_direction == IMU:
            direction = imu_direction(arm.robot, given, self.imu_topic)
            arm = replace(arm, robot=arm.robot.with_gravity(direction.gravity))
            turned = replace(arm, estimator="weighted")._identify(equations, signals, sources).base_links
        found = arm._identify(equations, signals, sources, turned=turned, direction=direction)
        if turned is not None and direction is None and found.direction is not None:
            exact = replace(found.direction, given=self.robot.gravity, gravity=found.robot.gravity)
            found = replace(found, direction=exact)
        ranges = {joint: (float(positions.min()), float(positions.max())) for joint, positions in carried.items()}
        return replace(found, ranges=ranges, remarks=(*found.remarks, *coupling))

    def fit_samples(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, torque: ArrayLike) -> LinkResult:
        """Identify from samples (N, n) each that need no filter, in flat memory; "huber" keeps all residuals.

        Raises:
            ModelError: arrays of unlike shapes.
            IdentificationError: no samples, values that are not finite, or fewer samples than parameters.
        """
        kinds = self.errors == "robust"
        equations: SampleEquations[LinkColumns] = SampleEquations(self.robot, q, qd, qdd, torque, kinds=kinds)
        cutoff = self.cutoff or LEAST_CUTOFF
        motion_cutoff = self.motion_cutoff or MOTION_OVER_EQUATIONS * cutoff
        reason = f"samples are taken as given; recordings to compare with pass a low-pass at {cutoff:g} Hz"
        arm, coupling = self._coupled(equations)
        found = arm._identify(equations, LinkSignals(cutoff, motion_cutoff, reason), ("samples",))
        return replace(found, remarks=(*found.remarks, *coupling))

    def _coupled(self, equations: LinkEquations | SampleEquations) -> tuple[LinkIdentification, list[str]]:
        """The same with the joints that surely are driven together, and a remark about each pair."""
        if self.friction != "auto" or self.coupled:
            return self, []
        found = choose_coupling(self.robot, equations)
        return replace(self, coupled=tuple(found.gains)), found.remarks

    def _along_gravity(
        self, equations: LinkEquations, signals: LinkSignals, sources: tuple[str, ...], start: NDArray | None
    ) -> tuple[LinkIdentification, NDArray]:
        """The same with gravity along the direction that fits best, and parameters (10 n,) that it turns.

        Gauss-Newton steps of two angles, which solve for all other parameters along with them; from the direction
        that the check of recordings finds.
        """
        quick = replace(self, estimator="weighted")
        if start is not None:
            quick = replace(quick, robot=self.robot.with_gravity(start))
        found = quick._identify(equations, signals, sources)
        turned, quick = found.base_links, replace(quick, friction=found.friction, coupled=())
        for _ in range(ROUNDS):
            found = quick._identify(equations, signals, sources, turned=turned, trial=True)
            assert found.direction is not None
            gravity, turned = found.direction.gravity, found.base_links
            turn = angle_between(gravity, quick.robot.gravity)
            quick = replace(quick, robot=self.robot.with_gravity(gravity))
            if turn < max(SETTLED, ENOUGH * found.direction.widest):
                break
        return replace(self, robot=quick.robot), turned

    def _columns(
        self, equations: LinkEquations | SampleEquations, sources: tuple[str, ...], turned: NDArray | None
    ) -> tuple[LinkColumns, list[FrictionMenu]]:
        """Columns of the friction that is given; or of all that may be chosen, with each joint's menu."""
        robot = self.robot
        pairs = FrictionModel.by_name(robot, {}, coupled=self.coupled).coupled
        if self.friction == "auto":
            menus = friction_menus(robot, equations.speed_rms)
            return LinkColumns(robot, [menu.candidates for menu in menus], pairs, turned=turned), menus
        given = self.friction
        if isinstance(given, JointFriction):
            given = FrictionModel(given, pairs, robot.parameters)
        refuse_unseen(robot, given, equations.motion, ", ".join(sources))
        return LinkColumns.of(robot, given, turned), []

    def _identify(
        self,
        equations: LinkEquations | SampleEquations,
        signals: LinkSignals,
        sources: tuple[str, ...],
        chosen_columns: LinkColumns | None = None,
        *,
        turned: NDArray | None = None,
        direction: GravityDirection | None = None,
        trial: bool = False,
    ) -> LinkResult:
        """Solve the equations.

        Args:
            equations: of all recordings.
            signals: their cut-offs.
            sources: names of the recordings.
            chosen_columns: without those that are below the noise.
            turned: (10 n,) parameters that gravity turns: its direction is not exact. None: it is.
            direction: of gravity by an IMU; None: with `turned` it is estimated.
            trial: on the way to the direction, which may yet be undetermined.
        """
        columns, menus = self._columns(equations, sources, turned)
        columns = chosen_columns or columns
        factors = equations.factors(columns)
        robot = self.robot
        if factors.counts.sum() < (unknowns := columns.most_unknowns(columns.first)):
            raise IdentificationError(
                f"{', '.join(sources)}: {factors.counts.sum()} samples after filtering for {unknowns} unknowns of one "
                "joint; record longer"
            )
        prior, changes = possible_prior(robot.parameters, robot.link_names)
        remarks = [signals.reason, *(f"prior of {change}" for change in changes), *self._driver_remarks(signals)]
        first = WeightedProblem(factors, columns.chosen(columns.first))
        columns.falling, grams = falling_joints(columns, first, equations.motion, prior)
        choice = self._choice(columns, menus, grams, prior, remarks)
        friction = columns.friction(choice)
        base = columns.whole_base(choice)
        chosen = columns.chosen(choice)
        n_links = robot.parameters.size
        independent = columns.independent(choice)
        plain = first.of(independent)
        known = len(independent)
        fitted = columns.turns if direction is None else ()
        problem = plain.of(np.append(independent, fitted))
        kind = self.estimator if self.estimator in UNBIASED else "weighted"
        found, noise = estimate_base(kind, problem, base, lambda: equations.blocks(columns))
        if chosen_columns is None and (fewer := columns.above(noise)) is not columns:
            return self._identify(equations, signals, sources, fewer, turned=turned, direction=direction, trial=trial)
        if not trial and isinstance(equations, LinkEquations):
            require_one_load(robot, equations, plain.of(independent), base, noise=noise, sources=sources)
        weights = np.ones_like(noise) if self.estimator == "ordinary" else noise
        covariance, dof = self._covariance(problem, weights, noise, found.solution, equations.noise_factor)
        base_links = _base_links(base, n_links, found.solution)
        if direction is not None:
            covariance += turn_covariance(plain.of(np.append(independent, columns.turns)), weights, direction)
        elif fitted:
            direction = direction_of_fit(robot, found.solution, covariance, dof)
            if not trial:
                poses = np.concatenate([position for position, *_ in equations.motion])
                information = turn_information(*np.split(problem.stacked(noise)[0], [known], axis=1))
                require_determined(information, direction, robot, base_links, poses, noise=noise)
        covariance = covariance[:known, :known]
        estimate = BaseEstimate(
            names=tuple(base.names[c] for c in base.columns),
            expressions=base.expressions,
            values=found.values[:known],
            covariance=covariance if found.covariance is None else widened(found.covariance, covariance),
            nominal=self._nominal(base),
            dof=dof[:known],
            gain_shifts=gain_shifts(problem, weights)[:, :known],
            gain_error=self.torque_gain_error,
        )
        unknown = beyond_the_arm(columns, choice, estimate, problem.torque_rms())
        estimate = replace(estimate, values=np.where(unknown, np.nan, estimate.values))
        nonnegative = columns.nonnegative(choice)
        decided = np.isin(chosen, independent)
        full = FullProblem(plain.of(chosen), noise, prior, nonnegative, decided)
        own = FullProblem(plain, noise, prior, nonnegative[decided])
        solution, weight = self._whole(full, own, base, found.solution[:known], sources)
        remarks += [f"weight of the URDF {weight.weight:g}"] * (self.estimator == "consistent")
        urdf = full.with_links(robot.parameters)
        remarks += [*found.remarks, *what_is_open(base, estimate)]
        return LinkResult(
            model=LinkModel(robot, solution[:n_links], friction, solution[n_links:], signals),
            urdf_model=LinkModel(robot, urdf[:n_links], friction, urdf[n_links:], signals),
            base=base,
            base_parameters=estimate,
            condition_number=found.condition_number,
            noise=noise,
            residual_rms=full.problem.residual_rms(full.reduce(solution)),
            torque_rms=problem.torque_rms(),
            urdf_residual_rms=full.problem.residual_rms(full.reduce(urdf)),
            n_samples=int(factors.counts.sum()),
            sources=sources,
            settings=self._settings(weight),
            remarks=tuple(remarks),
            scores=weight.scores,
            direction=direction,
            base_links=base_links,
        )

    def _covariance(
        self, problem: WeightedProblem, weights: NDArray, noise: NDArray, solution: NDArray, noise_factor: float
    ) -> tuple[NDArray, NDArray]:
        """Covariance (k, k) of a solution (k,), and its degrees of freedom (k,)."""
        if self.errors == "robust":
            return robust_covariance(problem, weights, noise, solution, self.torque_gain_error)
        return white_covariance(problem, weights, noise * noise_factor, self.torque_gain_error)

    def _whole(
        self, full: FullProblem, own: FullProblem, base: BaseParameters, fitted: NDArray, sources: tuple[str, ...]
    ) -> tuple[NDArray, PriorWeight]:
        """All parameters (10 n + f,) by the estimator, and the weight of the prior; `own` is in base parameters."""
        weight, n_links = PriorWeight(0.0, {}), self.robot.parameters.size
        if self.estimator == "consistent":
            weight = PriorWeight(self.prior_weight, {}) if self.prior_weight else choose_weight(full)
            return self._consistent(full, weight.weight, sources), weight
        if self.estimator not in UNBIASED:
            return estimate_all(self.estimator, full, self.robot.parameters, self.prior_weight), weight
        solution = np.zeros(full.to_base.shape[1])
        solution[[*range(n_links), *base.columns[base.columns >= n_links]]] = own.nearest(fitted)
        return solution, weight

    def _consistent(self, full: FullProblem, weight: float, sources: tuple[str, ...]) -> NDArray:
        try:
            return full.consistent().solve(weight).solution
        except IdentificationError as error:
            raise IdentificationError(
                f"{', '.join(sources)}: no links of about the URDF's size have such torques ({error}); look at units, "
                "signs and the order of the joints"
            ) from error

    def _choice(
        self,
        columns: LinkColumns,
        menus: Sequence[FrictionMenu],
        grams: FoldGrams,
        prior: NDArray,
        remarks: list[str],
    ) -> tuple[JointFriction, ...]:
        remarks += [
            f"torque of {joint} falls with speed, which no friction does: its viscous term may be negative"
            for joint in columns.falling
        ]
        if not menus:
            return columns.first
        found = choose_friction(columns, menus, grams, prior)
        remarks += found.remarks(self.robot.joint_names)
        return found.joints

    def _driver_remarks(self, signals: LinkSignals) -> list[str]:
        """Return a sentence on what the driver did to the torque, where it did something."""
        if signals.driver is None:
            return []
        chosen_by = "by the torques themselves" if self.torque_filter == AUTO else "as given"
        return [f"torque as the driver reports it, {chosen_by}: {signals.driver}"]

    def _nominal(self, base: BaseParameters) -> NDArray:
        n_links = self.robot.parameters.size
        known = np.zeros(len(base.names))
        known[:n_links] = self.robot.parameters
        # A combination with a rotor or with friction is more than the URDF says.
        mixed = np.any(np.abs(base.combinations[:, n_links:]) > 0, axis=1)
        return np.where(mixed, np.nan, base.project(known))

    def _settings(self, weight: PriorWeight) -> dict:
        return {
            "estimator": str(self.estimator),
            "equations": str(self.equations),
            "errors": self.errors,
            "friction": "auto" if self.friction == "auto" else "given",
            "prior_weight": float(weight.weight),
            "torque_gain_error": float(self.torque_gain_error),
        }


def _base_links(base: BaseParameters, size: int, solution: NDArray) -> NDArray:
    """Parameters (10 n,) with the torques of base parameters (k,), all others being zero."""
    links, own = np.zeros(size), base.columns[base.columns < size]
    links[own] = solution[: len(own)]
    return links


def _positions(recordings: Sequence[Recording]) -> dict[str, NDArray]:
    """Positions (K,) of all joints that were recorded, those of the arm too: grippers may mimic them."""
    parts: dict[str, list[NDArray]] = {}
    for recording in recordings:
        own = dict(zip(recording.joint_names, recording.position.T, strict=True))
        for joint, positions in {**recording.others, **own}.items():
            if len(positions) and np.abs(positions).max() <= LARGEST:
                parts.setdefault(joint, []).append(positions)
    return {joint: np.concatenate(positions) for joint, positions in parts.items()}
