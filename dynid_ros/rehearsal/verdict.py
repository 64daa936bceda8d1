"""Verdict on a rehearsed experiment and its page: errors, intervals that contain the truth, weak parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.display import as_fine_as, percent, text_table
from dynid_ros.estimation.estimate import MAX_RELATIVE_ERROR
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import as_number, load_identified
from dynid_ros.identified.links import known_arm
from dynid_ros.jobs.screen import Screen
from dynid_ros.rehearsal.experiment import RehearsedExperiment
from dynid_ros.rehearsal.truth_comparison import (
    Check,
    Comparison,
    compare_base_parameters,
    compare_gravity,
    compare_load,
    comparison_table,
    count_covered,
)
from dynid_ros.report.drawing import Plot, before_after_plot
from dynid_ros.report.formats import counted, significant
from dynid_ros.report.page import Bullets, Facts, Figures, Links, Page, Section, Table, Text, Tile

N_JUDGED_POSES = 256
"""Number of poses over the limits for the comparison of gravity torques, a power of two."""
MIN_JUDGED_TORQUE = 0.01
"""Smallest torque of a joint whose relative error counts, relative to the largest torque of all joints."""
MIN_SHOWN_TORQUE = 1e-4
"""Smallest torque of a joint whose relative error is shown, relative to the largest torque of all joints."""
MIN_COVERAGE_PERCENT = 80.0
"""Share of the 95 % intervals that must contain the truth; those of one experiment err together."""
MAX_NAMED_WEAK = 6
MAX_TRACKING_ERROR = 0.2
"""Largest distance from the planned motion, rad or m, before the node `excitation` stops a motion by default."""

TITLES = {
    "gravity": ("Gravity torque", "largest"),
    "unseen": ("Unseen torque", "RMS"),
    "load": ("Gravity torque of the load", "largest"),
}
KIND_TITLES = {"gravity": "Gravity parameters", "links": "Base parameters of links", "load": "Load"}


@dataclass(frozen=True)
class JointErrors:
    """Torque of each joint and the error of its prediction.

    Attributes:
        torque: (n,) largest or RMS torque, N m or N.
        error: (n,) error relative to it; NaN where it is not predicted, or the joint has no torque.
        urdf: (n,) error by the user's URDF, likewise.
    """

    torque: NDArray
    error: NDArray
    urdf: NDArray

    @classmethod
    def of(cls, torque: NDArray, error: NDArray, urdf: NDArray) -> JointErrors:
        """Return relative errors of absolute ones (n,)."""
        shown = torque > MIN_SHOWN_TORQUE * torque.max(initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(torque, *(np.where(shown, each / torque, np.nan) for each in (error, urdf)))

    @property
    def worst(self) -> int:
        """Index of the judged joint with the largest relative error, or without a prediction."""
        judged = self.torque > MIN_JUDGED_TORQUE * self.torque.max(initial=0.0)
        return int(np.argmax(np.where(judged, np.nan_to_num(self.error, nan=np.inf), -np.inf)))

    def check(self, quantity: str, names: Sequence[str], goal: float) -> Check:
        """Return the goal for the worst joint and its error."""
        return Check(f"{quantity} of {names[self.worst]}", 100 * float(self.error[self.worst]), 100 * goal, "%")


class Rehearsal:
    """A rehearsed experiment compared with its truth.

    Attributes:
        gravity, unseen, load: errors by joint of gravity torque, unseen torque and gravity torque of the load; None:
            not identified.
        comparisons: estimates and true values by kind.
    """

    def __init__(self, experiment: RehearsedExperiment, seconds: float) -> None:
        self.experiment = experiment
        self.seconds = seconds
        self.comparisons: dict[str, list[Comparison]] = {}
        self.gravity: JointErrors | None = None
        self.unseen: JointErrors | None = None
        self.load: JointErrors | None = None
        self._poses = experiment.limits.poses(N_JUDGED_POSES)
        if "gravity" in experiment.runs:
            self._judge_gravity()
        if "links" in experiment.runs and not experiment.runs["links"].missing:
            self._judge_links()
        if "load" in experiment.runs:
            self._judge_load()
        self.files: dict[str, Path] = dict(experiment.files)

    def _judge_gravity(self) -> None:
        experiment = self.experiment
        model = IdentifiedGravity(experiment.robot, load_identified(experiment.runs["gravity"].identified))
        arm = experiment.simulated.arm
        arm.detach_load()
        true = arm.truth.gravity_torque(self._poses)
        found = model.sensor_torque(self._poses) - np.nan_to_num(model.offset)
        nominal = experiment.robot.gravity_torque(self._poses)
        errors = (np.abs(torque - true).max(axis=0) for torque in (found, nominal))
        self.gravity = JointErrors.of(np.abs(true).max(axis=0), *errors)
        self.comparisons["gravity"] = compare_gravity(model, arm.truth)

    def _judge_links(self) -> None:
        experiment = self.experiment
        run = experiment.runs["links"]
        validation = run.validations[0]
        torque = validation.rms / validation.relative_rms
        urdf = np.full(len(torque), np.nan) if experiment.urdf is None else experiment.urdf.rms
        self.unseen = JointErrors.of(torque, validation.rms, urdf)
        document = load_identified(run.identified)
        arm = known_arm(document, experiment.robot)
        self.comparisons["links"] = compare_base_parameters(document, arm, experiment.simulated.arm)

    def _judge_load(self) -> None:
        experiment = self.experiment
        run = experiment.runs["load"]
        true = experiment.simulated.load_torque(self._poses)
        robot = experiment.robot
        parameters = np.zeros(len(robot.parameters))
        parameters[robot.tip_columns] = run.result.in_last_link()
        found = robot.gravity_torque(self._poses, np.nan_to_num(parameters))
        if not np.isfinite(run.result.mass):
            found = np.full_like(true, np.nan)
        largest = np.abs(true).max(axis=0)
        self.load = JointErrors.of(largest, np.abs(found - true).max(axis=0), np.full(len(largest), np.nan))
        section = load_identified(run.identified)["load"]
        if section["loaded"]:
            self.comparisons["load"] = compare_load(experiment.simulated.truth_table()["load"], section)

    @cached_property
    def checks(self) -> list[Check]:
        """Goals and measured values."""
        settings = self.experiment.settings
        names = self.experiment.robot.joint_names
        checks = []
        if self.gravity is not None:
            checks.append(self.gravity.check("gravity torque", names, settings.max_gravity_error))
        if self.unseen is not None:
            checks.append(self.unseen.check("unseen torque", names, settings.max_torque_error))
        if self.load is not None:
            error = self.comparisons["load"][0].relative_error if "load" in self.comparisons else np.nan
            checks.append(Check("mass of the load", 100 * error, 100 * settings.max_load_error, "%"))
        distance = self.experiment.simulated.tracking_error
        late = int(np.argmax(distance))
        label = f"distance of {names[late]} from the planned motion"
        checks.append(Check(label, float(distance[late]), MAX_TRACKING_ERROR, "rad (m)"))
        covered, count = count_covered(self._all)
        share = 100 * covered / count if count else np.nan
        checks.append(Check("intervals that contain the truth", share, MIN_COVERAGE_PERCENT, "%", at_least=True))
        return checks

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentences on why the experiment would not serve; empty: it would."""
        experiment = self.experiment
        failed = [f"{check.label}: {check.measured}, goal {check.bound}" for check in self.checks if not check.passed]
        refused = [f"{kind} not identified: {reason}" for kind, reason in experiment.refused.items()]
        undetermined = [missing for run in experiment.runs.values() for missing in run.missing]
        return (*refused, *undetermined, *failed)

    @property
    def weak(self) -> list[str]:
        """Names of the base parameters whose standard error exceeds 30 % of their value, the least certain first."""
        run = self.experiment.runs.get("links")
        if run is None:
            return []
        estimate = run.result.base_parameters
        error = np.nan_to_num(np.abs(estimate.relative_standard_errors), nan=np.inf)
        order = [k for k in np.argsort(-error, kind="stable") if error[k] > MAX_RELATIVE_ERROR]
        return [estimate.names[k] for k in order]

    @property
    def _all(self) -> list[Comparison]:
        return [one for comparisons in self.comparisons.values() for one in comparisons]

    def verdict(self) -> list[str]:
        """Return sentences: whether it would serve, the intervals, the load, undetermined parameters."""
        experiment = self.experiment
        if self.missing:
            more = f" (and {len(self.missing) - 1} more)" if len(self.missing) > 1 else ""
            head = f"this experiment would not serve: {self.missing[0]}{more}"
        else:
            reached = [f"{check.label} within {check.measured}" for check in self.checks[:-2]]
            head = f"this experiment would serve; {', '.join(reached)}"
        lines = [f"{experiment.robot.name}: {head}."]
        covered, count = count_covered(self._all)
        parts = [f"{kind} {'{} of {}'.format(*count_covered(of))}" for kind, of in self.comparisons.items()]
        if count:
            lines.append(
                f"{covered} of {count} 95 % intervals contain the truth ({100 * covered / count:.0f} %): "
                f"{', '.join(parts)}."
            )
        if "load" in self.comparisons:
            mass = self.comparisons["load"][0]
            shown = " ± ".join(as_fine_as(value, mass.half) for value in (mass.value, mass.half))
            lines.append(f"Load of {mass.true:.3g} kg: {shown} kg (95 %).")
        return [*lines, self.determined()]

    def determined(self) -> str:
        """Return a sentence on the base parameters that stay undetermined or uncertain."""
        run = self.experiment.runs.get("links")
        if run is None:
            return "Links are not identified, so no parameter of them is determined."
        names = self.weak
        if not names:
            return f"All {run.result.base.rank} base parameters are determined to {percent(MAX_RELATIVE_ERROR)}."
        more = ", …" if len(names) > MAX_NAMED_WEAK else ""
        return (
            f"{len(names)} of {run.result.base.rank} base parameters stay undetermined or are known to no better than "
            f"{percent(MAX_RELATIVE_ERROR)}: {', '.join(names[:MAX_NAMED_WEAK])}{more}; "
            "`dynid excite --recorded` designs a second motion for them."
        )

    def table(self) -> list[str]:
        """Return the lines of the table by joint, heads first."""
        names = self.experiment.robot.joint_names
        columns: dict[str, Sequence[str]] = {}
        for title, errors, what in (
            ("gravity", self.gravity, "largest"),
            ("unseen torque", self.unseen, "RMS"),
            ("load", self.load, "largest"),
        ):
            if errors is None:
                continue
            columns[f"{title}, {what}"] = [f"{value:.3g}" for value in errors.torque]
            columns["error" if title == "gravity" else "error" + " " * len(columns)] = _cells(errors.error)
            if title != "load":
                columns["URDF" + " " * len(columns)] = _cells(errors.urdf)
        return text_table(["joint", *map(str.rstrip, columns)], list(zip(names, *columns.values(), strict=True)))

    def remarks(self) -> list[str]:
        """Return errors of the export, the assumed truth, and faults of the rehearsal."""
        experiment = self.experiment
        remarks = []
        if experiment.replayed is not None:
            position = experiment.replayed.position
            reached = ", URDF ".join(f"{1e3 * float(position[name].max()):.2g}" for name in ("exported", "URDF"))
            remarks.append(f"arm.xml in MuJoCo, 0.2 s of recorded torque: off by up to {reached} [1e-3 rad, m], RMS")
        remarks += [*experiment.remarks, self.assumed()]
        return [*remarks, *(f"changed in the truth: {text}" for text in experiment.simulated.replaced_links)]

    def assumed(self) -> str:
        """Return a sentence on the truth that was assumed."""
        truth = self.experiment.settings.truth
        load = self.experiment.simulated.load[0]
        return (
            f"assumed: links off by up to {percent(truth.link_error)}, friction {percent(truth.friction_level)} of the "
            f"torque, gains {percent(truth.torque_gain_error)}, noise {percent(truth.torque_noise)}, stamps "
            f"{1e3 * truth.stamp_jitter:.2g} ms, {percent(truth.dropped)} lost, load {load:.2g} kg; give yours"
        )

    def screen(self) -> Screen:
        """Return verdict, table by joint, remarks and files."""
        details = "\n".join(
            [
                *self.verdict(),
                *self.missing,
                *self.table(),
                *self.remarks(),
                *(f"{name}: {path}" for name, path in self.files.items()),
                f"took {self.seconds:.0f} s",
            ]
        )
        return Screen(self.verdict(), self.table(), self.remarks(), list(self.files.values()), details=details)

    def document(self) -> dict:
        """Return the numbers as plain data."""
        experiment = self.experiment

        def by_joint(values: NDArray) -> dict[str, float | None]:
            return dict(zip(experiment.robot.joint_names, map(as_number, values), strict=True))

        errors: Mapping[str, JointErrors | None] = {
            "gravity": self.gravity,
            "unseen_torque": self.unseen,
            "load": self.load,
        }
        return {
            "serves": not self.missing,
            "goals": [{**asdict(check), "passed": check.passed} for check in self.checks],
            "joints": {
                title: {name: by_joint(values) for name, values in vars(each).items()}
                for title, each in errors.items()
                if each is not None
            },
            "intervals": {
                kind: dict(zip(("covered", "count"), count_covered(of), strict=True))
                for kind, of in self.comparisons.items()
            },
            "load_mass_error": self.comparisons["load"][0].relative_error if "load" in self.comparisons else None,
            "weak": self.weak,
            "durations": dict(experiment.durations),
            "tracking_error": by_joint(experiment.simulated.tracking_error),
            "remarks": [*experiment.remarks, *experiment.simulated.replaced_links],
            "seconds": self.seconds,
        }


def _cells(errors: NDArray) -> list[str]:
    return ["–" if np.isnan(error) else percent(error) for error in errors]


def with_report(rehearsal: Rehearsal) -> Rehearsal:
    """Write report.html into the output folder and add it to the rehearsal's files."""
    experiment = rehearsal.experiment
    covered, count = count_covered([one for of in rehearsal.comparisons.values() for one in of])
    settings = experiment.settings
    facts = {name.replace("_", " "): f"{value:g}" for name, value in vars(settings.truth).items() if value is not None}
    facts |= {"load mass": f"{experiment.simulated.load[0]:g} kg", "seed": f"{settings.seed:g}"}
    facts |= {f"motion for {name}": f"{seconds:.0f} s" for name, seconds in experiment.durations.items()}
    page = Page(
        title=f"Rehearsal of {experiment.robot.name}",
        kind="Rehearsal on a simulated arm",
        heading=experiment.robot.name,
        verdict=rehearsal.verdict()[0],
        sentences=rehearsal.verdict()[1:],
        tiles=[
            *(Tile(check.label, check.measured, f"goal: {check.bound}") for check in rehearsal.checks[:-1]),
            Tile("Intervals with the truth", f"{covered} of {count}", rehearsal.checks[-1].bound),
        ],
        sections=[
            _joint_section(rehearsal),
            _interval_section(rehearsal),
            _parameter_section(rehearsal),
            Section("Remarks", [Bullets([*rehearsal.missing, *rehearsal.remarks()])]),
            Section(
                "The truth",
                [
                    "The simulated robot is the arm of the URDF with wrong links, friction, sensors and a load. The "
                    "identification has seen neither these numbers nor truth.yaml, only the recordings.",
                    Facts(facts),
                ],
            ),
            Section("Pages of the steps", [Links(_pages(experiment.output))]),
        ],
        made="Rehearsed",
    )
    rehearsal.files = {"report": page.write(experiment.output / "report.html"), **rehearsal.files}
    return rehearsal


def _pages(output: Path) -> list[tuple[str, str]]:
    names = [*(f"motions/{name}" for name in ("gravity", "links", "unseen", "load")), "gravity", "links", "load"]
    return [(name, f"{name}/report.html") for name in names if (output / name / "report.html").is_file()]


def _joint_section(rehearsal: Rehearsal) -> Section:
    """Return the table of errors by joint, and a plot of each quantity."""
    names = rehearsal.experiment.robot.joint_names
    columns: dict[tuple[str, str], Sequence[str]] = {}
    plots = []
    for key, (title, what) in TITLES.items():
        errors: JointErrors | None = getattr(rehearsal, key)
        if errors is None:
            continue
        columns[(title, f"{what}, N m (N)")] = [significant(value) for value in errors.torque]
        columns[(f"{title}: error", "identified")] = _cells(errors.error)
        if key != "load":
            columns[(f"{title}: error", "URDF")] = _cells(errors.urdf)
        label = f"{title}: error relative to its {what} (%)"
        plots.append(Plot(before_after_plot(names, 100 * errors.urdf, 100 * errors.error, label), title))
    return Section(
        "By joint",
        [
            "Errors are those of the predicted torque, relative to the torque of the joint. Gravity and load are "
            "compared with the true torque in poses all over the limits; unseen torque is what the sensors read in a "
            "motion that was not fitted. The goals do not count joints with less than 1 % of the largest torque.",
            Table.by_column("Joint", names, columns),
            Figures(plots),
        ],
    )


def _interval_section(rehearsal: Rehearsal) -> Section:
    parts: list[object] = [
        "A 95 % interval is the uncertainty that the identification states. Of a hundred intervals about ninety-five "
        "should contain the true value; those of one experiment err together. Base parameters with friction in them "
        "are left out: other terms may describe that friction as well."
    ]
    for kind, comparisons in rehearsal.comparisons.items():
        parts += [Text(KIND_TITLES[kind], "heading"), comparison_table(comparisons)]
    return Section("Intervals and the truth", parts)


def _parameter_section(rehearsal: Rehearsal) -> Section:
    """Return the undetermined parameters, and those that no motion determines."""
    weak = rehearsal.weak
    parts: list[object] = [Text(rehearsal.determined())]
    if weak:
        parts.append(f"{counted(len(weak), 'base parameter')}, the least certain first: {', '.join(weak)}.")
    quality = rehearsal.experiment.quality
    if quality is not None and quality.columns.hidden:
        parts.append(f"No motion of this arm shows {', '.join(quality.columns.hidden)}.")
    return Section("Undetermined parameters", parts)
