"""Structure of the link equations: the answer to "which model?", before "which numbers?".

The structure consists of the joints that share a motor, the direction of gravity and the friction terms of each joint.
The choices are made in this order, each by how well it predicts held-out samples or explains the torques. The low-pass
filter of the driver is chosen together with the whole structure, see `structure_choice`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.estimation.normal_equations import NormalEquations, WeightedProblem
from dynid_ros.files.disk_arrays import read_column
from dynid_ros.identification.equations import LinkEquations, SampleEquations
from dynid_ros.identification.integral_equations import IntegralEquations
from dynid_ros.identification.links.friction_choice import (
    FrictionMenu,
    choose_friction,
    falling_joints,
    friction_menus,
)
from dynid_ros.identified.gravity_direction import GravityDirection
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import possible_prior
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.model.urdf import MAX_MAGNITUDE
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import Recordings, read_all
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.signals.driver_filter import DriverFilter

EQUATIONS: dict[str, type[LinkEquations]] = {"filtered": LinkEquations, "integral": IntegralEquations}


@dataclass(frozen=True, eq=False)
class LinkData:
    """Motion and torque of an arm, as equations.

    Attributes:
        robot: arm with the other joints of the recordings (a gripper's) at their median positions.
        equations: equations of all samples.
        signals: filters of motion and torque.
        sources: names of the recordings.
        recordings: recordings with all that they contain; empty for bare samples.
        ranges: smallest and largest position of each recorded joint, rad or m.
        remarks: sentence on the torque filter, if there is one.
        max_samples: rough number of equations of a joint that are used, see `thinned`; None: all equations.
    """

    robot: RobotModel
    equations: LinkEquations | SampleEquations
    signals: LinkSignals
    sources: tuple[str, ...]
    recordings: tuple[Recording, ...] = ()
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    max_samples: int | None = None

    @property
    def spans(self) -> NDArray:
        """Ranges (n,) of the positions of the arm's joints, rad or m; 0 where no recording has the joint."""
        return np.array([np.ptp(self.ranges.get(joint, (0.0, 0.0))) for joint in self.robot.joint_names])

    def thinned(self, max_samples: int) -> LinkData:
        """Return the data with a part of the equations if there are many more than a limit per joint."""
        equations = self.equations.thinned(max_samples)
        return self if equations is self.equations else replace(self, equations=equations, max_samples=max_samples)

    def with_driver(self, driver: DriverFilter, remark: str) -> LinkData:
        """Return the data with a filter of the driver on the torques, and the reason for it."""
        signals = replace(self.signals, driver=driver)
        selected = [recording.select(self.robot.joint_names) for recording in self.recordings]
        data = replace(
            self,
            signals=signals,
            equations=LinkEquations(signals, selected),
            remarks=(*self.remarks, f"torque as the driver reports it, {remark}"),
        )
        return data if self.max_samples is None else data.thinned(self.max_samples)


def prepare_data(
    robot: RobotModel,
    recordings: Sequence[Recordings],
    form: str,
    cutoffs: tuple[float | None, float | None],
    torque_filter: DriverFilter | str | None,
) -> LinkData:
    """Resample and filter recordings.

    Args:
        robot: the arm.
        recordings: recordings or their files.
        form: key of `EQUATIONS`.
        cutoffs: cutoff frequencies of the equations and of the positions, Hz; None: chosen from the motion.
        torque_filter: filter that the driver applied to the torques; "auto": chosen; None: no filter.

    Raises:
        RecordingError: a joint of the arm is missing in a recording.
        IdentificationError: no motion, or no torque.
    """
    given = read_all(recordings, robot.joint_names)
    selected = [recording.select(robot.joint_names) for recording in given]
    signals = LinkSignals.choose(selected, *cutoffs)
    remarks: tuple[str, ...] = ()
    if isinstance(torque_filter, DriverFilter):
        signals = replace(signals, driver=torque_filter)
        remarks = (f"torque as the driver reports it, as given: {torque_filter}",)
    positions = _recorded_positions(selected)
    return LinkData(
        robot.with_posture({joint: median for joint, (_, median, _) in positions.items()}),
        EQUATIONS[form](signals, selected),
        signals,
        tuple(recording.source for recording in given),
        tuple(given),
        {joint: (low, high) for joint, (low, _, high) in positions.items()},
        (*_delay_remarks(given), *remarks),
    )


def _delay_remarks(recordings: Sequence[Recording]) -> list[str]:
    """Return a sentence on the delays with which torques were computed from commands."""
    delays = list(dict.fromkeys(part.command_delay for part in recordings if part.command_delay is not None))
    words = [
        f"{1e3 * delay.value:.3g} ms" + (f" ± {1e3 * half_width(delay.error, np.inf):.1g} ms" if delay.error else "")
        for delay in delays
    ]
    return [f"torque by the commands of the drives, which act after {', '.join(words)}"] if words else []


def _recorded_positions(recordings: Sequence[Recording]) -> dict[str, tuple[float, float, float]]:
    """Return the lowest, median and highest position of all recorded joints, also of the arm: grippers may mimic it."""
    names = dict.fromkeys(name for one in recordings for name in (*one.others, *one.joint_names))
    positions = {}
    for joint in names:
        parts = []
        for one in recordings:
            if joint in one.joint_names:
                parts.append(read_column(one.position, one.joint_names.index(joint)))
            elif joint in one.others:
                parts.append(one.others[joint])
        values = [part for part in parts if len(part) and np.abs(part).max() <= MAX_MAGNITUDE]
        if values:
            together = np.concatenate(values)
            positions[joint] = float(together.min()), float(np.median(together)), float(together.max())
    return positions


@dataclass(frozen=True, eq=False)
class LinkStructure:
    """Columns of the equations that the data can determine.

    Attributes:
        robot: arm with its direction of gravity.
        data: motion and torque.
        columns: base parameters of the links and all friction terms that were considered.
        problem: compressed equations in the columns of the first candidates.
        joints: (n,) friction terms and shapes of each joint.
        prior: (10 n,) physically possible parameters of the links near the URDF's.
        remarks: sentences on what was chosen.
        imu_direction: direction of gravity by an IMU; None: given or estimated.
    """

    robot: RobotModel
    data: LinkData
    columns: LinkColumns
    problem: WeightedProblem
    joints: tuple[JointFriction, ...]
    prior: NDArray
    remarks: tuple[str, ...]
    imu_direction: GravityDirection | None = None

    @property
    def factors(self) -> NormalEquations[LinkColumns]:
        """Compressed equations of all columns."""
        return self.problem.factors

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters of links and friction together."""
        return self.columns.whole_base(self.joints)

    @cached_property
    def independent(self) -> NDArray:
        """(k,) columns of the base parameters."""
        return self.columns.independent(self.joints)

    @cached_property
    def base_problem(self) -> WeightedProblem:
        """Equations of the base parameters."""
        return self.problem.of(self.independent)

    @cached_property
    def turned_problem(self) -> WeightedProblem:
        """Equations of the base parameters and, last, of the two turns of gravity if its direction is not exact."""
        return self.base_problem.of(np.append(self.independent, self.columns.turns))

    @property
    def estimates_gravity(self) -> bool:
        """Whether the turns of gravity are unknowns of the fit."""
        return bool(self.columns.turns) and self.imu_direction is None

    @property
    def fitted_problem(self) -> WeightedProblem:
        """Equations of all unknowns of the fit."""
        return self.turned_problem if self.estimates_gravity else self.base_problem

    @property
    def friction(self) -> FrictionModel:
        """Friction model of all joints."""
        return self.columns.friction(self.joints)

    def with_samples(self, max_samples: int | None) -> LinkStructure:
        """Return the structure with another number of equations, see `LinkData.max_samples`."""
        if max_samples == self.data.max_samples:
            return self
        equations = self.data.equations.thinned(np.inf if max_samples is None else max_samples)
        data = replace(self.data, equations=equations, max_samples=max_samples)
        columns = self.columns.of_choice(self.joints)
        problem = WeightedProblem(data.equations.factors(columns), columns.chosen(columns.first))
        return replace(self, data=data, columns=columns, problem=problem)


def choose_columns(
    robot: RobotModel,
    data: LinkData,
    friction: FrictionModel | Literal["auto"],
    coupled: Sequence[tuple[int, int]] = (),
    *,
    turned_links: NDArray | None = None,
    imu_direction: GravityDirection | None = None,
) -> LinkStructure:
    """Choose friction terms, and drop base parameters whose torque is below the noise.

    Args:
        robot: arm with its direction of gravity.
        data: motion and torque.
        friction: friction terms; "auto": chosen for each joint by the held-out loss.
        coupled: pairs of coupled joints, if friction is chosen; a FrictionModel has its own.
        turned_links: (10 n,) parameters that gravity turns, if its direction is not exact.
        imu_direction: direction of gravity by an IMU.

    Raises:
        IdentificationError: fewer samples than unknowns of one joint.
    """
    menus = friction_menus(robot, data.equations.speed_rms, data.spans) if isinstance(friction, str) else []
    if isinstance(friction, FrictionModel):
        columns = LinkColumns.of(robot, friction, turned_links)
    else:
        columns = LinkColumns(robot, [menu.candidates for menu in menus], coupled, turned=turned_links)
    structure = _choose_terms(robot, data, columns, menus, imu_direction)
    above_noise = columns.above(structure.fitted_problem.weighted()[1])
    return structure if above_noise is columns else _choose_terms(robot, data, above_noise, menus, imu_direction)


def _choose_terms(
    robot: RobotModel,
    data: LinkData,
    columns: LinkColumns,
    menus: Sequence[FrictionMenu],
    imu_direction: GravityDirection | None,
) -> LinkStructure:
    """Choose the friction terms of each joint among given columns; without menus, the first candidates stay."""
    factors = data.equations.factors(columns)
    unknowns = columns.most_unknowns(columns.first)
    if factors.counts.sum() < unknowns:
        raise IdentificationError(
            f"{', '.join(data.sources)}: {factors.counts.sum()} samples after filtering for {unknowns} unknowns of one "
            "joint; record longer"
        )
    prior, changes = possible_prior(robot.parameters, robot.link_names)
    first = WeightedProblem(factors, columns.chosen(columns.first))
    columns.falling, grams = falling_joints(columns, first, data.equations.motion, prior)
    remarks = [data.signals.reason, *(f"prior of {change}" for change in changes), *data.remarks]
    remarks += [
        f"torque of {joint} falls with speed, which no friction does: its viscous term may be negative"
        for joint in columns.falling
    ]
    joints = columns.first
    if menus:
        choice = choose_friction(columns, menus, grams, prior)
        remarks += choice.remarks(robot.joint_names)
        joints = choice.joints
    return LinkStructure(robot, data, columns, first, joints, prior, tuple(remarks), imu_direction)
