"""Results of a fleet: which arm is unlike the others, which one changes, and the table of all parameters."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from dynid_ros.estimation.estimate import half_width, normal_score
from dynid_ros.files import write_atomically
from dynid_ros.fleet.fleet_run import FLEET_FILES, JobOutcome
from dynid_ros.identified.identified_file import load_identified


class Entry(NamedTuple):
    """A parameter that was identified; `group` has kind and kinematics: arms of one can be compared.

    The time is that of the run as a number, negative infinity where it is not known; value and error are in SI units.
    """

    group: tuple[str, str]
    arm: str
    run: str
    time: float
    parameter: str
    value: float
    std: float


FALSE_ALARM = 0.05
"""Probability of any report for a fleet of equal arms that do not change."""
MIN_ARMS = 20
"""Smallest number of arms among which an outlier can be detected."""
MOST_UNLIKE = 0.25
AT_MOST = 50
"""Largest share and number of arms that can be unlike the others in one parameter."""
SPREAD_GRID = (1e-3, 30.0, 200)
"""Smallest and largest spread that is thought of, in median deviations, and the least number of them."""


@dataclass(frozen=True)
class Compared:
    """A parameter of an arm's last run, and the median and spread of the fleet, without what standard errors explain.

    `z` is where a normal distribution is as improbable as this arm is, being one of the others; `threshold` the largest
    of one that is like them.
    """

    entry: Entry
    median: float
    spread: float
    z: float
    threshold: float

    @property
    def unlike(self) -> bool:
        """Whether the arm is unlike the others."""
        return abs(self.z) > self.threshold


def compare(entries: Iterable[Entry]) -> list[Compared]:
    """Compare the last runs of all arms, and return the entries by how unusual they are, largest score first.

    A badly identified arm does not count as an outlier: its standard error enters the score, and so does the
    uncertainty
    of the spread among few or badly known arms. The threshold accounts for the number of parameters.
    """
    last = {
        (*entry.group, entry.arm, entry.parameter): entry for entry in sorted(entries, key=lambda entry: entry.time)
    }
    sets: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in last.values():
        key = (*entry.group, entry.parameter)
        sets[key].append(entry)
    many = [each for each in sets.values() if len(each) >= MIN_ARMS]
    threshold = float(half_width(1.0, level=1.0 - FALSE_ALARM / max(sum(map(len, many)), 1)))
    found = []
    for each in many:
        value = np.array([e.value for e in each])
        std = np.array([e.std for e in each])
        median = float(np.median(value))
        spread, z = _scores(value - median, std, threshold)
        found += [Compared(e, median, spread, float(own), threshold) for e, own in zip(each, z, strict=True)]
    return sorted(found, key=lambda one: -abs(one.z))


def _scores(deviation: NDArray, std: NDArray, threshold: float) -> tuple[float, NDArray]:
    """Return the spread among the arms, and the score z (n,) of each arm as a further sample of the others.

    Outliers must not widen the spread: the most extreme arms are removed one by one, and all up to the last one
    beyond the threshold stay removed (Rosner 1983, "Percentage points for a generalized ESD procedure").
    """
    size = np.abs(deviation)
    smallest, largest, count = SPREAD_GRID
    count = max(count, int(10 * np.sqrt(len(size))))  # the more arms, the narrower the spreads that are possible
    spreads = (np.median(size) or size.mean() or 1.0) * np.geomspace(smallest, largest, count)
    variance = spreads**2 + std[:, None] ** 2
    right = deviation[:, None]
    terms = np.stack([1.0 / variance, right / variance, right**2 / variance, -np.log(variance)])
    like = np.ones(len(size), dtype=bool)
    extreme = []
    unlike = 0
    for number in range(min(int(MOST_UNLIKE * len(size)), AT_MOST)):
        sums = terms[:, like].sum(axis=1)
        best = np.argmax(_log_likelihood(sums))
        own = int(np.argmax(like * (deviation - sums[1, best] / sums[0, best]) ** 2 / variance[:, best]))
        like[own] = False
        extreme.append(own)
        if abs(_score(terms[:, like].sum(axis=1), spreads, deviation[own], variance[own])) > threshold:
            unlike = number + 1
    like[extreme[unlike:]] = True
    total = terms[:, like].sum(axis=1)
    others = total[:, None] - terms * like[:, None]
    return float(spreads[np.argmax(_log_likelihood(total))]), _score(others, spreads, right, variance)


def _score(sums: NDArray, spreads: NDArray, deviation: NDArray, variance: NDArray) -> NDArray:
    """Return the probability as a normal z, averaged over all spreads by their likelihood from the others' sums.

    The prior of the spread is flat in the variance; the grid is even in the spread's logarithm.
    """
    weight = _log_likelihood(sums) + 2.0 * np.log(spreads)
    weight = weight - logsumexp(weight, axis=-1, keepdims=True)
    normal = (deviation - sums[1] / sums[0]) / np.sqrt(variance + 1.0 / sums[0])
    above, below = (logsumexp(weight + log_ndtr(sign * normal), axis=-1) for sign in (-1.0, 1.0))
    return normal_score(below, above)


def _log_likelihood(sums: NDArray) -> NDArray:
    """Return the log likelihood of each spread, with the fleet's mean integrated out."""
    weight, first, second, logarithm = sums
    return 0.5 * (logarithm - np.log(weight) - second + first**2 / weight)


# Arms that change.


@dataclass(frozen=True)
class Drift:
    """Rate of change of an arm's parameter with its 95 % interval, per day or per unit of the runs' numbers.

    `entry` belongs to the last run; `sure` means that the rate differs from zero, corrected for the number of
    parameters.
    """

    entry: Entry
    runs: int
    rate: float
    interval: list[float]
    sure: bool


def drifts(entries: Iterable[Entry]) -> list[Drift]:
    """Return the rates of all parameters of arms with two or more runs at known times, by weighted least squares.

    If three or more runs scatter more about the line than their standard errors predict, the interval follows
    their scatter (Birge's ratio), with Student's quantile.
    """
    series: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in entries:
        if np.isfinite(entry.time):
            key = (*entry.group, entry.arm, entry.parameter)
            series[key].append(entry)
    several = [each for each in series.values() if len({entry.time for entry in each}) > 1]
    return [_drift(sorted(each, key=lambda entry: entry.time), len(several)) for each in several]


def _drift(each: Sequence[Entry], count: int) -> Drift:
    time, value, std = (np.array([getattr(e, name) for e in each]) for name in ("time", "value", "std"))
    weight = std**-2.0
    since = time - np.average(time, weights=weight)
    information = np.sum(weight * since**2)
    rate = float(np.sum(weight * since * value) / information)
    left = value - np.average(value, weights=weight) - rate * since
    freedom = len(each) - 2
    ratio = np.sum(weight * left**2) / freedom if freedom else 0.0
    error = float(np.sqrt(max(ratio, 1.0) / information))

    def quantile(alarm: float) -> float:
        return float(half_width(1.0, freedom if ratio > 1.0 else np.inf, 1.0 - alarm))

    half = quantile(0.05) * error
    return Drift(
        each[-1], len(each), rate, [rate - half, rate + half], abs(rate) > quantile(FALSE_ALARM / count) * error
    )


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
