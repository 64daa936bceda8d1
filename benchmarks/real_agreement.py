"""Agreement between recordings of the same real robot, and false alarms on sound recordings.

python -m benchmarks.real_agreement [--robot ur10e]

Base parameters are identified from two recordings, or from two halves of one, each with its own friction model. The
table counts the parameters whose difference is covered by their 95 % intervals, with the default error of the torque
gain and without one, since the gain is the same in both. Friction coefficients are left out where the two friction
models have different terms, because the coefficients then differ in meaning. Then every recording is checked as in
`dynid check`, and its load is identified with the arm from another recording, as in `dynid identify load`: there must
be no finding, and the load must be zero. Needs the recordings in DYNID_DATA.
as `dynid identify load` does: nothing is wrong with them, and nothing was carried.
"""

import argparse
import sys
from itertools import combinations, pairwise

import numpy as np
import yaml

from benchmarks.real_links import COUPLED, DATA, DIVISIONS, MISSING, real_recording, real_robot
from dynid_ros.checks.all_checks import check
from dynid_ros.errors import DynidError
from dynid_ros.identification import LinkIdentification, LoadIdentification
from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.recording import Recording

LOADED = "Load"


def halves(run: Recording) -> list[Recording]:
    """Return the two halves of a recording."""
    first = run.time < np.mean(run.time[[0, -1]])
    return [run.slice(first), run.slice(~first)]


def names(robot: str) -> list[str]:
    """Return the names of a robot's recordings that move all joints."""
    rows = (row for division in yaml.safe_load(DIVISIONS.read_text())[robot].values() for row in division["fit"])
    return sorted({row[0] for row in rows})


def agreement(one: LinkResult, other: LinkResult) -> dict[str, list[bool]]:
    """Return whether each base parameter that both determine agrees, by "links" and "friction"."""
    friction, other_friction = (
        dict(zip(r.robot.joint_names, r.friction.per_joint(r.robot.n_joints), strict=True)) for r in (one, other)
    )
    agreements: dict[str, list[bool]] = {"links": [], "friction": []}
    ends = [
        dict(zip(r.base_parameters.expressions, r.base_parameters.confidence_intervals(0.95), strict=True))
        for r in (one, other)
    ]
    for expression in ends[0].keys() & ends[1].keys():
        (low, high), (least, most) = ends[0][expression], ends[1][expression]
        if not np.isfinite([low, high, least, most]).all():
            continue
        term, *words = expression.split()
        joints = [joint for joint in friction if joint in words]
        joint_terms = [friction[joint].terms + other_friction[joint].terms for joint in joints]
        is_friction = term != "rotor_inertia" and any(term in terms for terms in joint_terms)
        if is_friction and any(friction[joint] != other_friction[joint] for joint in joints):
            continue
        agree = abs(low + high - least - most) <= np.hypot(high - low, most - least)
        agreements["friction" if is_friction else "links"].append(bool(agree))
    return agreements


def compare_recordings(robot: str) -> dict[str, list[bool]]:
    """Return the agreement of all pairs of recordings of a robot; print a row for each error of the gain."""
    runs = [real_recording(robot, name) for name in names(robot)]
    pairs = list(combinations(runs, 2)) if len(runs) > 1 else [tuple(halves(runs[0]))]
    total: dict[str, list[bool]] = {"links": [], "friction": []}
    for gain_error in (0.01, 0.0):
        fits = {}
        for run in {id(run): run for pair in pairs for run in pair}.values():
            settings = {"coupled": COUPLED.get(robot, ()), "torque_gain_error": gain_error}
            fits[id(run)] = LinkIdentification(real_robot(robot), **settings).fit(run)
        agreements: dict[str, list[bool]] = {"links": [], "friction": []}
        for one, other in pairs:
            for kind, agree in agreement(fits[id(one)], fits[id(other)]).items():
                agreements[kind] += agree
        shares = ", ".join(f"{kind} {np.mean(a or [np.nan]):6.1%} of {len(a)}" for kind, a in agreements.items())
        print(f"{robot:13} gain known to {gain_error:.0%}, {len(pairs)} pairs: {shares}", flush=True)
        total = agreements if gain_error else total
    return total


def check_recordings(robot: str) -> tuple[int, int]:
    """Return the number of recordings, and the number of those with a finding."""
    stems = sorted(path.stem for path in (DATA / robot / "develop").glob("*.npz"))
    faulty = 0
    for stem in stems:
        findings = check(real_recording(robot, stem), real_robot(robot))
        faulty += bool(findings)
        for finding in findings:
            print(f"{robot:13} {stem}: {finding.severity}: {finding}", flush=True)
    return len(stems), faulty


def weigh_nothing(robot: str) -> tuple[int, int, int]:
    """Return the numbers of unloaded recordings, of intervals that contain zero, and of refusals."""
    runs = [real_recording(robot, name) for name in names(robot)]
    runs = runs if len(runs) > 1 else halves(runs[0])
    held = changed = 0
    for one, other in pairwise([*runs, runs[0]]):
        arm = LinkIdentification(real_robot(robot), coupled=COUPLED.get(robot, ())).fit(one)
        try:
            result = LoadIdentification(real_robot(robot), arm).fit(other)
        except DynidError as error:
            changed += 1
            print(f"{robot:13} {other.source}: {error}", flush=True)
            continue
        low, high = result.confidence_intervals()[0]
        held += bool(low <= 0.0 <= high)
        print(f"{robot:13} {other.source}: {low:.3f} to {high:.3f} kg", *result.remarks, sep="; ", flush=True)
    return len(runs), held, changed


def main() -> None:
    """Print the three results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    robots = list(yaml.safe_load(DIVISIONS.read_text()))
    parser.add_argument("--robot", choices=robots, action="append")
    chosen = parser.parse_args().robot or robots
    if not DATA.is_dir():
        sys.exit(MISSING)
    results = [compare_recordings(robot) for robot in chosen]
    for kind in ("links", "friction"):
        agreements = [agree for result in results for agree in result[kind]]
        print(f"{kind}: {np.mean(agreements or [np.nan]):.1%} of {len(agreements)} base parameters agree")
    counts = np.sum([check_recordings(robot) for robot in chosen], axis=0)
    print(f"checks: {counts[1]} of {counts[0]} sound recordings draw a finding")
    counts = np.sum([weigh_nothing(robot) for robot in chosen], axis=0)
    print(f"loads: {counts[1]} of {counts[0]} unloaded arms have an interval that holds 0, {counts[2]} are refused")


if __name__ == "__main__":
    main()
