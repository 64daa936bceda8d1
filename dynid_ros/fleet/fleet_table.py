"""Results of a fleet in one table: parameters over arms and time, outliers, drift."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dynid_ros.files import write_atomically
from dynid_ros.fleet.comparison import Compared, Drift, Entry, compare, drifts
from dynid_ros.fleet.fleet_file import FLEET_FILES
from dynid_ros.fleet.fleet_run import JobOutcome
from dynid_ros.identified.identified_file import load_identified

MAX_SHOWN_ROWS = 20
"""Largest number of lines of one kind in the summary; the files have all."""
TABLE_COLUMNS = ("arm", "run", "identification", "parameter", "value", "standard_error", "z", "outlier")
EXIT_FAILED = 2
EXIT_UNDETERMINED = 1


@dataclass(frozen=True)
class FleetTable:
    """Outcomes of all jobs.

    Attributes:
        outcomes: in the order of the file.
        output: folder of the files.
    """

    outcomes: Sequence[JobOutcome]
    output: Path

    @cached_property
    def entries(self) -> list[Entry]:
        """Every parameter of every job that was done."""
        found = []
        for outcome in self.outcomes:
            job = outcome.job
            if not outcome.error:
                document = load_identified(job.folder / "identified.yaml")
                robot = document.get("robot") or {}
                same = str(robot.get("kinematics_sha256") or robot.get("joints"))
                for name, value, std in known_parameters(document):
                    found.append(Entry((job.kind, same), job.arm, job.run, job.time, name, value, std))
        return found

    @cached_property
    def compared(self) -> list[Compared]:
        """Every parameter of every arm's last run among the others', the most unlike first."""
        return compare(self.entries)

    @cached_property
    def drifts(self) -> list[Drift]:
        """Rates of all parameters of arms with several runs."""
        return drifts(self.entries)

    @property
    def code(self) -> int:
        """Exit status: 2 if a job failed; 1 if recordings do not determine all requested parameters; else 0."""
        if any(outcome.error for outcome in self.outcomes):
            return EXIT_FAILED
        return EXIT_UNDETERMINED if any(outcome.missing for outcome in self.outcomes) else 0

    @property
    def files(self) -> Mapping[str, Path]:
        """Files of the whole fleet; those of each job are in its folder."""
        return {Path(name).stem: self.output / name for name in FLEET_FILES}

    def write(self) -> None:
        """Write the table as CSV, a line for each parameter of each job, and all else as YAML."""
        write_atomically(self.files["table"], self._csv())
        text = yaml.safe_dump(self.document(), sort_keys=False, allow_unicode=True)
        write_atomically(self.files["fleet"], text)

    def _csv(self) -> str:
        compared = {id(one.entry): one for one in self.compared}
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(TABLE_COLUMNS)
        for e in self.entries:
            one = compared.get(id(e))
            found = [f"{one.z:.3g}", int(one.unlike)] if one else ["", ""]
            lines.writerow([e.arm, e.run, e.group[0], e.parameter, f"{e.value:.9g}", f"{e.std:.4g}", *found])
        return text.getvalue()

    def document(self) -> dict[str, Any]:
        """Plain data."""
        jobs: list[dict[str, Any]] = []
        for of in self.outcomes:
            named = {"arm": of.job.arm, "run": of.job.run, "identification": of.job.kind, "folder": str(of.job.folder)}
            jobs.append({**named, "error": of.error or None, "missing": [*of.missing], "warnings": [*of.warnings]})
        unlike = [each for each in self.compared if each.unlike]
        return {"jobs": jobs, "outliers": [*map(_plain, unlike)], "drift": [*map(_plain, self.drifts)]}

    def summary(self) -> str:
        """Return lines for a terminal: finished jobs, failed jobs with reasons, outliers, changes."""
        done = [outcome for outcome in self.outcomes if not outcome.error]
        anew = sum(outcome.anew for outcome in done)
        arms = len({outcome.job.arm for outcome in self.outcomes})
        lines = [
            f"{len(self.outcomes)} jobs of {arms} arms: {anew} done now, {len(done) - anew} done before, "
            f"{len(self.outcomes) - len(done)} not done"
        ]
        lines += [f"not done: {outcome.job.name}: {outcome.error}" for outcome in self.outcomes if outcome.error]
        short = [f"not enough: {outcome.job.name}: {outcome.missing[0]}" for outcome in done if outcome.missing]
        lines += _first(short, "jobs whose recordings are not enough")
        lines += _first([_outlier_line(each) for each in self.compared if each.unlike], "outliers")
        lines += _first([_drift_line(each) for each in self.drifts if each.sure], "drifts")
        lines.append(f"wrote {', '.join(map(str, self.files.values()))}")
        return "\n".join(lines)


def _plain(found: Compared | Drift) -> dict[str, Any]:
    e = found.entry
    others = {name: value for name, value in vars(found).items() if name != "entry"}
    return {"arm": e.arm, "run": e.run, "parameter": e.parameter, "value": e.value, "standard_error": e.std, **others}


def _outlier_line(each: Compared) -> str:
    e = each.entry
    who = f"{e.arm} {e.run}".strip()
    return (
        f"unlike the others: {who}: {e.parameter} {e.value:.4g} ± {e.std:.2g}; the fleet has {each.median:.4g}, spread "
        f"{each.spread:.2g}: z {each.z:.1f}, threshold {each.threshold:.1f}"
    )


def _drift_line(each: Drift) -> str:
    low, high = each.interval
    return (
        f"changes: {each.entry.arm}: {each.entry.parameter} by {each.rate:.3g} a day (95 %: {low:.3g} to {high:.3g}), "
        f"{each.runs} runs, now {each.entry.value:.4g} ± {each.entry.std:.2g}"
    )


def _first(lines: Sequence[str], what: str) -> list[str]:
    rest = len(lines) - MAX_SHOWN_ROWS
    return [*lines[:MAX_SHOWN_ROWS], *([f"… and {rest} further {what}"] if rest > 0 else [])]


def known_parameters(document: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yield name, value and standard error of each parameter with a finite value and standard error."""
    base = document.get("base_parameters")
    for entry in base if isinstance(base, list) else ():
        if isinstance(entry, Mapping) and _finite(entry.get("value")) and _finite(entry.get("std")):
            yield f"base {entry.get('expression')}", float(entry["value"]), float(entry["std"])
    for section, content in document.items():
        if isinstance(content, Mapping) and section not in ("robot", "source", "signals"):
            yield from _with_errors(str(section), content)


def _with_errors(path: str, content: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    errors = content.get("std")
    if isinstance(errors, Mapping):
        for name, std in errors.items():
            stds = list(_flat(std))
            pairs = zip(_flat(content.get(name)), stds, strict=False)
            for number, (value, error) in enumerate(pairs):
                if _finite(value) and _finite(error) and error > 0:
                    yield f"{path} {name}" + (f"[{number}]" if len(stds) > 1 else ""), float(value), float(error)
    for name, inner in content.items():
        if name != "std" and isinstance(inner, Mapping):
            yield from _with_errors(f"{path} {name}", inner)


def _flat(value: Any) -> Iterator[Any]:
    """Yield the value itself, or the values in nested lists."""
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from _flat(entry)
    else:
        yield value


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))
