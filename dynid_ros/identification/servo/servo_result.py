"""Result of a servo identification: delay, gain, inertia and friction, over the gain if it is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.display import text_table
from dynid_ros.estimation.covariance import jackknife_covariance, left_out_steps
from dynid_ros.estimation.estimate import MAX_RELATIVE_ERROR, half_width
from dynid_ros.estimation.rank import Identifiability
from dynid_ros.identification.result import Result, unseen_agreement
from dynid_ros.identification.servo.closed_loop import ClosedLoops, JointLayout, Normal
from dynid_ros.identification.servo.servo_gravity import servo_gravity_section
from dynid_ros.identification.servo.servo_runs import (
    ARMATURE,
    COMPLIANCE,
    ServoModel,
    ServoRun,
    check_told,
    servo_runs,
    with_known_gains,
)
from dynid_ros.identified.identified_file import DOF, as_number
from dynid_ros.identified.servos import DAMPING_KEY, IN_TORQUE_KEY, servo_entry
from dynid_ros.identified.validation import Validation, unit_of_joints, validate_torque
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import prismatic_unit
from dynid_ros.recording import Recording

SERVO_UNITS = {
    "delay": ("s", "s"),
    "gain": ("", "N m/rad"),
    "inertia": ("s²", "kg m²"),
    ARMATURE: ("s²", "kg m²"),
    "viscous": ("s", "N m s/rad"),
    "derivative": ("s", "N m s/rad"),
    "coulomb": ("rad", "N m"),
    "offset": ("rad", "N m"),
    "gravity": ("rad", "N m"),
}
"""Units of a revolute joint by label: over the gain, and with a known gain."""
MIN_GRAVITY = 1e-5
"""Gravity over gain, rad or m, up to which a joint counts as not loaded: axes of a URDF are not exactly upright."""
MAX_RESIDUAL_OVER_NOISE = 3.0
"""RMS residual over the noise of the encoder above which the model is incomplete."""


@dataclass(frozen=True, eq=False)
class ServoJoint:
    """Estimates of one joint; numbers are over its gain.

    Attributes:
        name: name of the joint.
        layout: layout of its parameters.
        values: parameters (p,).
        covariance: covariance (p, p) by a jackknife over blocks of time; NaN for undetermined parameters.
        dof: degrees of freedom of the covariance.
        rows: combinations (p,) of the parameters by label: mean inertia of the recorded motion, and its largest
            gravity.
        rms: RMS of measured minus simulated positions, rad or m.
        noise: noise of the encoder, from differences of successive positions, rad or m.
        condition_number: condition number of the derivatives in columns of unit norm; infinite if rank-deficient.
        stiffness: known gain, N m/rad (N/m); None: unknown.
        damping: known damping by the controller, N m s/rad (N s/m), which is then not part of `viscous`.
    """

    name: str
    layout: JointLayout
    values: NDArray
    covariance: NDArray
    dof: float
    rows: Mapping[str, NDArray]
    rms: float
    noise: float
    condition_number: float
    stiffness: float | None = None
    damping: float = 0.0

    @classmethod
    def of(
        cls,
        names: tuple[str, JointLayout],
        values: NDArray,
        normal: Normal,
        rows: Mapping[str, NDArray],
        noise: float,
        *,
        gains: tuple[float | None, float] = (None, 0.0),
    ) -> ServoJoint:
        """Return the joint from its name and layout, and the normal equations of the residuals at the estimate."""
        name, layout = names
        whole = normal.matrices.sum(axis=0)
        judged = Identifiability.of(whole / max(normal.rms, 1e-12) ** 2, whole / max(normal.rms, 1e-12) ** 2)
        norms = np.where(judged.norms > 0, judged.norms, 1.0)
        kept = np.linalg.svd(np.eye(len(norms)) - judged.null_space @ judged.null_space.T)[0][:, : judged.rank]
        into = kept / norms[:, None]
        used = normal.counts > 0
        matrices = np.einsum("pr,bpq,qs->brs", into, normal.matrices[used], into)
        moves = left_out_steps(matrices, normal.sides[used] @ into, 1e-12) @ into.T
        covariance = jackknife_covariance(moves - moves.mean(axis=0))
        covariance[~judged.identifiable] = covariance[:, ~judged.identifiable] = np.nan
        return cls(
            name,
            layout,
            values,
            covariance,
            float(np.count_nonzero(used) - 1),
            {
                label: row
                for label, row in rows.items()
                if np.abs((row / norms) @ judged.null_space).max(initial=0.0) < 1e-3
            },
            normal.rms,
            noise,
            judged.condition_number,
            *gains,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Parameter names; a base parameter is named by its linear combination."""
        return self.layout.names

    @cached_property
    def over_gain(self) -> dict[str, tuple[float, float]]:
        """Value and standard error by label, over the gain; NaN if undetermined."""
        return {label: self._combined(row) for label, row in self._labelled().items()}

    @cached_property
    def in_torque(self) -> dict[str, tuple[float, float]]:
        """Gain, N m/rad, and the other estimates in N m (the delay in s); empty if the gain is not known."""
        if self.stiffness is not None:
            known = {"gain": (self.stiffness, 0.0)}
            for label, (value, error) in self.over_gain.items():
                factor = 1.0 if label == "delay" else self.stiffness
                known[label] = (factor * value - (self.damping if label == "viscous" else 0.0), factor * error)
            return known
        if COMPLIANCE not in self.names:
            return {}
        at = self.names.index(COMPLIANCE)
        compliance, error = self._combined(np.eye(len(self.values))[at])
        if not (compliance > 0 and error < MAX_RELATIVE_ERROR * compliance):
            return {}
        found = {"gain": (1 / compliance, error / compliance**2), "delay": self.over_gain["delay"]}
        for label, row in self._labelled().items():
            value = float(row @ self.values)
            if label != "delay":
                slope = row / compliance
                slope = slope - value / compliance**2 * np.eye(len(self.values))[at]
                found[label] = (
                    value / compliance,
                    self._error(slope) if np.isfinite(self.over_gain[label][1]) else np.nan,
                )
        return found

    @cached_property
    def undetermined(self) -> dict[str, str]:
        """Reasons of undetermined estimates, by label."""
        found = {}
        if self.stiffness is None and COMPLIANCE not in self.names:
            found["gain"] = "no torque and no known mass: everything is known over the gain only"
        elif not self.in_torque:
            found["gain"] = "the reference mass does not load this joint enough in the recorded motion"
        for label, (_, error) in self.over_gain.items():
            if not np.isfinite(error):
                found[label] = "the recorded motion does not distinguish it from others"
        return found

    def base(self) -> list[tuple[str, float, float]]:
        """Return expression, value and standard error of each base parameter, over the gain."""
        first = self.layout.first + 1 + (COMPLIANCE in self.names)
        rows = np.eye(len(self.values))
        return [(self.names[k], *self._combined(rows[k])) for k in range(first, len(self.values))]

    def half(self, error: float) -> float:
        """Return half of a 95 % interval."""
        return float(half_width(error, self.dof))

    def _labelled(self) -> dict[str, NDArray]:
        rows = dict(zip(self.names, np.eye(len(self.values)), strict=True))
        first = self.names[: self.layout.first]
        own = {name: rows[name] for name in (*first, "offset")}
        own |= {ARMATURE: rows[ARMATURE]} if ARMATURE in rows else {}  # else it is in a combination with links
        return {**own, **self.rows}

    def _combined(self, row: NDArray) -> tuple[float, float]:
        error = self._error(row)
        return (float(row @ self.values), error) if np.isfinite(error) else (np.nan, np.nan)

    def _error(self, row: NDArray) -> float:
        own = row != 0
        return float(np.sqrt(max(row[own] @ self.covariance[np.ix_(own, own)] @ row[own], 0.0)))


@dataclass(frozen=True, eq=False, repr=False)
class ServoResult(Result):
    """Servos of all joints that moved.

    Attributes:
        robot: the whole arm.
        settings: settings of the identification.
        model: model of the joints that moved.
        joints: estimates by joint.
        sources: names of the recordings.
        loops: closed loops that were fitted.
    """

    robot: RobotModel
    settings: dict
    model: ServoModel
    joints: Mapping[str, ServoJoint]
    sources: tuple[str, ...]
    loops: ClosedLoops

    @classmethod
    def from_search(
        cls,
        robot: RobotModel,
        settings: dict,
        model: ServoModel,
        loops: ClosedLoops,
        *,
        end: tuple[Sequence[NDArray], Sequence[Normal]],
        sources: Sequence[str],
        gains: Mapping[str, tuple[float, float]],
    ) -> ServoResult:
        """Return the result from the parameters and normal equations at the end of the search, and known gains."""
        joints = {}
        for j, (name, values, normal) in enumerate(zip(model.robot.joint_names, *end, strict=True)):
            layout = loops.layouts[j]
            rows = _rows(loops.runs, layout, values, j)
            noise = _noise(loops.runs, j)
            joints[name] = ServoJoint.of(
                (name, layout), values, normal, rows, noise, gains=gains.get(name, (None, 0.0))
            )
        return cls(robot, settings, model, joints, tuple(sources), loops)

    @property
    def names(self) -> tuple[str, ...]:
        """Names (k,) such as "delay joint_2"."""
        return tuple(f"{label} {joint}" for joint, label, *_ in self._estimates())

    @property
    def parameters(self) -> NDArray:
        """Values (k,), in N m or N where the gain of the joint is known, else over the gain."""
        return np.array([value for *_, value, _ in self._estimates()])

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (k,) of `parameters`."""
        return np.array([error for *_, error in self._estimates()])

    @property
    def dof(self) -> NDArray:
        """Degrees of freedom (k,) of the variances."""
        return np.array([self.joints[joint].dof for joint, *_ in self._estimates()])

    def _estimates(self) -> list[tuple[str, str, str, float, float]]:
        """Return joint, label, unit, value and standard error of each parameter."""
        rows = []
        for name, joint in self.joints.items():
            known = bool(joint.in_torque)
            for label, (value, error) in (joint.in_torque or joint.over_gain).items():
                rows.append((name, label, self.units(name)[label][known], value, error))
        return rows

    def _table(self) -> dict[str, Sequence]:
        return self._table_of(
            [joint for joint, *_ in self._estimates()], [unit for _, _, unit, *_ in self._estimates()]
        )

    def is_prismatic(self, joint: str) -> bool:
        """Return whether a joint that moved is prismatic."""
        return bool(self.model.robot.chain.prismatic[self.model.robot.joint_names.index(joint)])

    def position_unit(self, joint: str) -> str:
        """Return the unit of the position of a joint that moved."""
        return "m" if self.is_prismatic(joint) else "rad"

    def units(self, joint: str) -> dict[str, tuple[str, str]]:
        """Return units by label, over gain and with the gain known, of a joint that moved."""
        if not self.is_prismatic(joint):
            return SERVO_UNITS
        return {label: (prismatic_unit(over), prismatic_unit(full)) for label, (over, full) in SERVO_UNITS.items()}

    @property
    def held(self) -> tuple[str, ...]:
        """Names of the joints that did not move."""
        return tuple(name for name in self.robot.joint_names if name not in self.joints)

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentence on a reference mass that no joint shows."""
        if self.settings["reference_mass"] is None or any(joint.in_torque for joint in self.joints.values()):
            return ()
        return ("no joint shows the reference mass; attach it, where it loads joints, and record the same motion",)

    @property
    def condition_number(self) -> float:
        """Condition number of the worst joint."""
        return max(joint.condition_number for joint in self.joints.values())

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on unknown gains and on joints that are not explained."""
        found = [f"{name} did not move, so nothing is said of it" for name in self.held]
        unknown = [name for name, joint in self.joints.items() if not joint.in_torque]
        if unknown:
            found.append(
                f"without a torque, or a known mass that loads them, the gains of {', '.join(unknown)} stay unknown: "
                "inertia, friction and gravity are known in proportion to each joint's gain, not in N m or N, and not "
                "in proportion to other joints'; viscous friction is not distinguished from damping by the controller"
            )
        for name, joint in self.joints.items():
            if joint.rms > MAX_RESIDUAL_OVER_NOISE * joint.noise:
                found.append(
                    f"{name}: the simulation leaves {joint.rms:.2g} {self.position_unit(name)} of the positions, "
                    f"{joint.rms / joint.noise:.0f} times the encoder's noise: the servo lacks "
                    "torque (does it saturate?), or has backlash, a dead "
                    "band or a transmission that bends; the intervals count that as noise"
                )
        return tuple(found)

    def verdict(self, validations: Sequence[Validation] = ()) -> str:
        """Say how well positions are simulated, and whether gains are known."""
        gains = sum(bool(joint.in_torque) for joint in self.joints.values())
        worst = max(self.joints, key=lambda name: self.joints[name].rms)
        agreement = unseen_agreement(validations).replace("torque", "following error")
        fit = f"simulated positions are within {self.joints[worst].rms:.2g} {self.position_unit(worst)} of the measured"
        return f"The gains of {gains} of {len(self.joints)} servos are known; {agreement or fit}."

    def joint_table(self, _validations: Sequence[Validation] = ()) -> list[str]:
        """Return the estimates by joint, over its gain where that is not known; undetermined ones are a dash."""
        labels = list(dict.fromkeys(label for joint in self.joints.values() for label in joint.over_gain))
        if any(joint.in_torque for joint in self.joints.values()):
            labels.insert(0, "gain")
        rows = []
        for name, joint in self.joints.items():
            estimates = joint.in_torque or joint.over_gain
            cells = []
            for label in labels:
                value, error = estimates.get(label, (np.nan, np.nan))
                unit = self.units(name)[label][bool(joint.in_torque)]
                cells.append(f"{value:.3g} {unit}".rstrip() if np.isfinite(error) else "–")
            rows.append([name, f"{joint.rms:.2g} {self.position_unit(name)}", *cells])
        return text_table(("joint", "position RMS", *labels), rows)

    def further_lines(self) -> list[str]:
        """Return each estimate with half of its 95 % interval, and reasons for undetermined ones."""
        lines = []
        for name, joint in self.joints.items():
            units = self.units(name)
            for estimates, kind in ((joint.over_gain, 0), (joint.in_torque, 1)):
                for label, (value, error) in estimates.items():
                    over = "" if kind or label == "delay" else " / gain"
                    if np.isfinite(error):
                        half = joint.half(error)
                        lines.append(f"{name}: {label}{over} {value:.5g} ± {half:.2g} {units[label][kind]}")
            lines += [f"{name}: {label} not determined, {why}" for label, why in joint.undetermined.items()]
        return lines

    def validate(self, other: Recording) -> Validation:
        """Compare simulated and measured following errors, command minus position, of another recording; rad or m.

        Raises:
            IdentificationError: no commands, or too short a recording.
        """
        told, measured, predicted = (np.concatenate(parts) for parts in zip(*self.simulate(other), strict=True))
        names = self.model.robot.joint_names
        return validate_torque(
            other.source,
            names,
            told - measured,
            told - predicted,
            unit=unit_of_joints(self.model.robot.chain.prismatic, "rad", "m"),
        )

    def simulate(self, other: Recording) -> list[tuple[NDArray, NDArray, NDArray]]:
        """Return commanded, measured and simulated positions (M, n) of each stretch of a recording without the mass.

        Raises:
            IdentificationError: no commands, or too short a recording.
        """
        runs = self._runs(other)
        loops = ClosedLoops(runs, self.loops.layouts, self.loops.step)
        values = [joint.values for joint in self.joints.values()]
        return [
            (np.column_stack([told.at(run.time) for told in run.commands]), run.position, predicted)
            for run, predicted in zip(runs, loops.predict(values), strict=True)
        ]

    def _runs(self, other: Recording) -> list[ServoRun]:
        selected = other.select(self.model.robot.joint_names)
        gains = {name: (joint.stiffness, joint.damping) for name, joint in self.joints.items() if joint.stiffness}
        selected = with_known_gains(selected, gains)
        check_told(selected)
        linear = self.loops.runs[0].commands[0].linear
        return servo_runs(self.model, selected, self.settings["longest_delay"], loaded=False, linear=linear)

    def sections(self) -> dict:
        """Return the section `servos`."""
        section = {}
        for name, joint in self.joints.items():
            entry = servo_entry(joint.over_gain, joint.in_torque, joint.dof, joint.undetermined)
            if joint.stiffness is not None:
                entry[IN_TORQUE_KEY][DAMPING_KEY] = joint.damping
            entry["residual_rms"] = float(joint.rms)
            entry["base_parameters"] = [
                {"expression": expression, "value": as_number(value), "std": as_number(error)}
                for expression, value, error in joint.base()
            ]
            section[name] = entry
        return {"servos": section} | self._gravity()

    def _gravity(self) -> dict:
        """Return the section `gravity` if the gains of all joints are known, for the compensation of gravity."""
        if self.held or not all(joint.in_torque for joint in self.joints.values()):
            return {}
        estimates = {}
        for name, joint in self.joints.items():
            first = joint.layout.first
            estimates[name] = joint.values[first:], joint.covariance[first:, first:]
        gains = {name: joint.in_torque["gain"] for name, joint in self.joints.items()}
        noise = {name: gains[name][0] * joint.rms for name, joint in self.joints.items()}
        position = np.concatenate([run.motion.position for run in self.loops.runs])
        section = servo_gravity_section(self.model, position, estimates, gains, noise)
        return {"gravity": section} if section else {}

    def document(self) -> dict:
        """Return the content of `identified.yaml`; degrees of freedom are those of each joint."""
        return {key: value for key, value in super().document().items() if key != DOF}


def _rows(runs: Sequence[ServoRun], layout: JointLayout, values: NDArray, joint: int) -> dict[str, NDArray]:
    """Return the combinations (p,) of mean inertia and of largest gravity in the recordings without the mass."""
    first = layout.first
    plain = [run for run in runs if not run.loaded]
    own = np.concatenate([run.columns[joint].inertia for run in plain])
    weight = np.concatenate([run.columns[joint].gravity for run in plain])
    size = weight @ values[first:]
    mean, largest = np.zeros(len(values)), np.zeros(len(values))
    mean[first:] = own.mean(axis=0)
    largest[first:] = weight[np.argmax(np.abs(size))]
    return {"inertia": mean, **({"gravity": largest} if np.abs(size).max() > MIN_GRAVITY else {})}


def _noise(runs: Sequence[ServoRun], joint: int) -> float:
    """Return the noise of an encoder by fourth differences, which hold √70 times the noise and hardly any motion."""
    differences = np.concatenate([np.diff(run.position[:, joint], 4) for run in runs])
    return float(np.sqrt(np.mean(differences**2) / 70)) + np.finfo(float).tiny
