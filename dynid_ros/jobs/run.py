"""Run of an identification: check recordings, fit, validate, and write `identified.yaml`, `report.html` and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dynid_ros.checks.finding import Finding
from dynid_ros.errors import DynidError, IdentificationError, ModelError
from dynid_ros.files import all_or_none, remove, writable_folder
from dynid_ros.identification.repeated_motion import measure_repeatability
from dynid_ros.identified.gravity_direction import GIVEN
from dynid_ros.identified.validation import Validation
from dynid_ros.jobs.inputs import check_apart, checked
from dynid_ros.jobs.kinds import KINDS, UNLOADED, VALIDATED, Checks, Kind
from dynid_ros.jobs.screen import Screen, progress
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals

RecordingsByRole = Mapping[str, Sequence[Recording]]


@dataclass(frozen=True)
class Extras:
    """Further files of a result.

    Attributes:
        files: paths by name, in addition to "identified" and "report".
        content: entries for the document of the run.
        remarks: lines for the summary.
        warnings: reasons why files were not written.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class IdentificationRun:
    """Result of an identification run: estimates, files, findings, validations.

    Attributes:
        kind: kind of identification, key of `KINDS`.
        result: result of the estimator.
        recorded_s: total duration of the fitted recordings, s.
        files: written files by name: "identified", "report" and more.
        findings: findings of the sanity check.
        validations: agreement with recordings that were not fitted.
        unvalidated: sentence on joints that could not be validated; empty if there are none.
        extras: further files, with remarks and warnings.
    """

    kind: str
    result: Any
    recorded_s: float
    files: Mapping[str, Path]
    findings: tuple[Finding, ...]
    validations: tuple[Any, ...] = ()
    unvalidated: str = ""
    extras: Extras = Extras()

    @property
    def identified(self) -> Path:
        """Path of `identified.yaml`."""
        return self.files["identified"]

    @property
    def report(self) -> Path:
        """Path of the report."""
        return self.files["report"]

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentences on undetermined parameters, with remedies."""
        return tuple(self.result.missing)

    @property
    def warnings(self) -> list[str]:
        """Findings of the sanity check, and reasons why files were not written."""
        return [*map(str, self.findings), *self.extras.warnings]

    def summary(self) -> str:
        """Return the complete text on result, validation, warnings and files."""
        lines = [self.result.summary()]
        for validation in self.validations:
            lines += [validation.title(), validation.table()]
        if repeatability := self.result.repeatability:
            lines += [*repeatability.sentences(), *repeatability.table()]
        lines += [self.unvalidated] if self.unvalidated else []
        lines += [f"warning: {warning}" for warning in self.warnings]
        lines += [f"not enough: {missing}" for missing in self.missing]
        return "\n".join([*lines, *self.extras.remarks, f"wrote {', '.join(map(str, self.files.values()))}"])

    def screen(self) -> Screen:
        """Return the verdict with the recordings, a table by joint, remarks and files."""
        result = self.result
        names = ", ".join(Path(source).stem for source in result.sources)
        verdict = [f"{result.robot.name}: {self.kind} identified from {names} ({self.recorded_s:.0f} s)"]
        verdict += result.verdict(self.validations).splitlines()
        remarks = [f"not enough: {missing}" for missing in self.missing]
        remarks += [f"warning: {warning}" for warning in self.warnings]
        remarks += result.repeatability.sentences() if result.repeatability else []
        remarks += [self.unvalidated] if self.unvalidated else []
        remarks += [note for note in result.notes() if note not in self.missing]
        remarks += self.extras.remarks
        table = result.joint_table(self.validations)
        return Screen(verdict, table, remarks, list(self.files.values()), details=self.summary())

    def document(self) -> dict:
        """Return the content of `identified.yaml`, entries on further files, and the warnings."""
        content = self.result.content(self.validations)
        return {**content, **self.extras.content, "warnings": self.warnings}


@all_or_none()
def run(kind: str, estimator: Any, recordings: RecordingsByRole, output: str | Path) -> IdentificationRun:
    """Check the recordings, fit, validate on recordings that were not fitted, and write all files into `output`.

    If the parameters that are needed to predict torque are undetermined, the estimates are written without validation.

    Args:
        kind: kind of identification, key of `KINDS`.
        estimator: estimator of that kind.
        recordings: recordings by the name of their `Role`.
        output: folder of the files.

    Raises:
        RecordingError: the sanity check found an error in a recording, or a recording is to be fitted and predicted.
        IdentificationError: the recordings contain too little information.
    """
    table = KINDS[kind]
    if hasattr(estimator, "check_inputs"):
        estimator.check_inputs(recordings)
    output = writable_folder(output, *table.writes)
    fitted = {role.name: list(recordings.get(role.name, ())) for role in table.roles}
    unseen = fitted.pop(VALIDATED.name, [])
    check_apart([recording for some in fitted.values() for recording in some], unseen)
    with progress(3 + bool(unseen)) as step:
        step("looking for faults in the recordings")
        has_known_gravity = getattr(estimator, "gravity_direction", GIVEN) == GIVEN
        if has_known_gravity:
            findings = _check(table, estimator, estimator.robot, fitted, unseen)
        else:
            findings = checked(fitted["recordings"], None)
        step(table.step)
        recorded_s = sum(recording.duration for some in fitted.values() for recording in some)
        result = estimator.fit(fitted.pop("recordings"), **fitted)
        if not has_known_gravity:  # compare torques with the model only after the direction of gravity is estimated
            findings = _check(table, estimator, result.robot, recordings, unseen)
        if unseen:
            step("validating")
        result = _with_repeatability(result, recordings["recordings"], unseen)
        compared = _validate(table, estimator, result, unseen)
        validations = tuple(one for one in compared if len(one.unpredicted) < len(one.joint_names))
        step("writing the report")
        identified = result.save(output / "identified.yaml", validations)
        extras = table.load("extras")(result, output) if table.extras else Extras()
        report = table.load("report")(output / "report.html", result, recordings, validations)
    files = {"identified": identified, **extras.files, "report": report}
    unvalidated = _unvalidated(result, compared) if unseen else ""
    return IdentificationRun(kind, result, recorded_s, files, findings, validations, unvalidated, extras)


def _check(
    table: Kind, estimator: Any, robot: Any, fitted: RecordingsByRole, unseen: Sequence[Recording]
) -> tuple[Finding, ...]:
    """Run the sanity check on recordings that are fitted together, and on each recording that is to be predicted."""
    checks: Checks = getattr(estimator, "checks", table.checks)
    together = [one for role, some in fitted.items() if role not in (UNLOADED.name, VALIDATED.name) for one in some]
    model = robot if checks.model else None
    findings: tuple[Finding, ...] = ()
    if unloaded := fitted.get(UNLOADED.name):
        findings = checked(unloaded, model, motion=True)
    for group in (together, *([one] for one in unseen)):
        findings += checked(estimator_joints(estimator, group), model, checks.motion, torque=checks.torque)
    return findings


def estimator_joints(estimator: Any, recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings with only the joints that the estimator fits."""
    names = getattr(estimator, "joint_names", None)
    return list(recordings) if names is None else [recording.select(names) for recording in recordings]


def _validate(table: Kind, estimator: Any, result: Any, unseen: Sequence[Recording]) -> list[Validation]:
    """Compare recordings with predictions; the estimator of a load does this itself, as it has the arm's model."""
    if result.missing and table.all_or_nothing:
        return []
    if hasattr(estimator, "validate"):
        return [estimator.validate(result, recording) for recording in unseen]
    return [result.validate(recording) for recording in unseen]


def _with_repeatability(result: Any, fitted: Sequence[Recording], unseen: Sequence[Recording]) -> Any:
    """Return the result with the repeatability of the torques, if it has that field and recordings repeat a motion."""
    if "repeatability" not in getattr(result, "__dataclass_fields__", {}):
        return result
    model = None if result.missing else getattr(result, "model", None)
    everything = [*fitted, *unseen]
    try:
        signals = LinkSignals.choose(fitted) if model is None else model.signals
        judged = range(len(fitted), len(everything))
        measured = measure_repeatability(result.robot, signals, everything, model, judged)
    except DynidError:  # too short for the filters, or without torque of a joint that is not fitted
        return result
    return replace(result, repeatability=measured)


def _unvalidated(result: Any, compared: Sequence[Validation]) -> str:
    """Say which joints were not validated because parameters that predict their torque are undetermined."""
    joints = list(dict.fromkeys(joint for one in compared for joint in one.unpredicted))
    if not result.missing or (compared and not joints):
        return ""
    return f"no validation of {', '.join(joints) or 'torque'}: not predicted, as {result.missing[0]}"


def write_urdf(result: Any, output: Path) -> Extras:
    """Write the URDF with identified links; if they are undetermined, remove the URDF of an earlier run."""
    path = output / "identified.urdf"
    try:
        return Extras({"urdf": result.write_urdf(path)})
    except (IdentificationError, ModelError) as error:
        remove(path)
        return Extras(remarks=() if result.missing else (f"no URDF: {error}",))
