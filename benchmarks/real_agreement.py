"""Whether recordings of one real robot agree, and whether sound ones pass. Needs the recordings in DYNID_DATA.

python -m benchmarks.real_agreement [--robot ur10e]

Base parameters of two recordings, or of two halves of one, each with friction that is chosen from it alone: how many
differ by no more than their 95 % intervals say, with the default error of the torque's gain and with none, since it is
the same in both. Coefficients of friction are left out where the two have other terms: there they mean something else.
Then every recording is checked as `dynid check` does, and weighed as a load of the arm that others of the robot gave,
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
    """A recording's two halves."""
    first = run.time < np.mean(run.time[[0, -1]])
    return [run.slice(first), run.slice(~first)]


def names(robot: str) -> list[str]:
    """Recordings of a robot that move all joints."""
    rows = (row for division in yaml.safe_load(DIVISIONS.read_text())[robot].values() for row in division["fit"])
    return sorted({row[0] for row in rows})


def agreement(one: LinkResult, other: LinkResult) -> dict[str, list[bool]]:
    """Whether each base parameter that both determine agrees, by "links" and "friction"."""
    own, again = (
        dict(zip(r.robot.joint_names, r.friction.per_joint(r.robot.n_joints), strict=True)) for r in (one, other)
    )
    found: dict[str, list[bool]] = {"links": [], "friction": []}
    ends = [
        dict(zip(r.base_parameters.expressions, r.base_parameters.confidence_intervals(0.95), strict=True))
        for r in (one, other)
    ]
    for expression in ends[0].keys() & ends[1].keys():
        (low, high), (least, most) = ends[0][expression], ends[1][expression]
        if not np.isfinite([low, high, least, most]).all():
            continue
        term, *words = expression.split()
        joints = [joint for joint in own if joint in words]
        of_friction = term != "rotor_inertia" and any(term in own[joint].terms + again[joint].terms for joint in joints)
        if of_friction and any(own[joint] != again[joint] for joint in joints):
            continue
        agree = abs(low + high - least - most) <= np.hypot(high - low, most - least)
        found["friction" if of_friction else "links"].append(bool(agree))
    return found


def compare_recordings(robot: str) -> dict[str, list[bool]]:
    """All pairs of a robot; prints a line for each error of the gain."""
    runs = [real_recording(robot, name) for name in names(robot)]
    pairs = list(combinations(runs, 2)) if len(runs) > 1 else [tuple(halves(runs[0]))]
    total: dict[str, list[bool]] = {"links": [], "friction": []}
    for gain_error in (0.01, 0.0):
        fits = {}
        for run in {id(run): run for pair in pairs for run in pair}.values():
            settings = {"coupled": COUPLED.get(robot, ()), "torque_gain_error": gain_error}
            fits[id(run)] = LinkIdentification(real_robot(robot), **settings).fit(run)
        found: dict[str, list[bool]] = {"links": [], "friction": []}
        for one, other in pairs:
            for kind, agree in agreement(fits[id(one)], fits[id(other)]).items():
                found[kind] += agree
        shares = ", ".join(f"{kind} {np.mean(a or [np.nan]):6.1%} of {len(a)}" for kind, a in found.items())
        print(f"{robot:13} gain known to {gain_error:.0%}, {len(pairs)} pairs: {shares}", flush=True)
        total = found if gain_error else total
    return total


def check_recordings(robot: str) -> tuple[int, int]:
    """Number of recordings, and of those that draw a finding."""
    stems = sorted(path.stem for path in (DATA / robot / "develop").glob("*.npz"))
    faulty = 0
    for stem in stems:
        findings = check(real_recording(robot, stem), real_robot(robot))
        faulty += bool(findings)
        for finding in findings:
            print(f"{robot:13} {stem}: {finding.severity}: {finding}", flush=True)
    return len(stems), faulty


def weigh_nothing(robot: str) -> tuple[int, int, int]:
    """Number of unloaded recordings, of those whose interval holds 0, and of those in which the load changed."""
    runs = [real_recording(robot, name) for name in names(robot)]
    runs = runs if len(runs) > 1 else halves(runs[0])
    held = changed = 0
    for one, other in pairwise([*runs, runs[0]]):
        arm = LinkIdentification(real_robot(robot), coupled=COUPLED.get(robot, ())).fit(one)
        try:
            found = LoadIdentification(real_robot(robot), arm).fit(other)
        except DynidError as error:
            changed += 1
            print(f"{robot:13} {other.source}: {error}", flush=True)
            continue
        low, high = found.confidence_intervals()[0]
        held += bool(low <= 0.0 <= high)
        print(f"{robot:13} {other.source}: {low:.3f} to {high:.3f} kg", *found.remarks, sep="; ", flush=True)
    return len(runs), held, changed


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    robots = list(yaml.safe_load(DIVISIONS.read_text()))
    parser.add_argument("--robot", choices=robots, action="append")
    chosen = parser.parse_args().robot or robots
    if not DATA.is_dir():
        sys.exit(MISSING)
    found = [compare_recordings(robot) for robot in chosen]
    for kind in ("links", "friction"):
        every = [agree for each in found for agree in each[kind]]
        print(f"{kind}: {np.mean(every or [np.nan]):.1%} of {len(every)} base parameters agree")
    counts = np.sum([check_recordings(robot) for robot in chosen], axis=0)
    print(f"checks: {counts[1]} of {counts[0]} sound recordings draw a finding")
    counts = np.sum([weigh_nothing(robot) for robot in chosen], axis=0)
    print(f"loads: {counts[1]} of {counts[0]} unloaded arms have an interval that holds 0, {counts[2]} are refused")


if __name__ == "__main__":
    main()
