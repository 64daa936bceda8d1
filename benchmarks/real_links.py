"""Links of four real robots, judged on motion that was not fitted. Needs the recordings in DYNID_DATA.

python -m benchmarks.real_links [--robot kuka_lwr4]

Everything is chosen by the identification itself from what it is fitted to. Torque and prediction pass the same
low-pass; RMS in N m per joint, in brackets as a share of the torque's RMS.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))  # known problems are shared with the tests

from real_recordings import DATA, MISSING, URDFS, real_recording, real_robot

from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.validation import Validation
from dynid_ros.recording import Recording

UR10E_RUNS = ("20_02_10-30sec_12harm", "20_02_12-40sec_12harm", "20_02_19_14harm50sec")


@dataclass
class Case:
    """What is fitted and what is predicted."""

    name: str
    robot: str
    fitted: list[Recording]
    unseen: list[Recording]
    settings: dict = field(default_factory=dict)


def cases(robot: str) -> Iterator[Case]:
    """The divisions of one robot's recordings."""
    if robot == "ur10e":
        runs = [real_recording(robot, name) for name in UR10E_RUNS]
        for run in runs:
            yield Case(f"two runs, unseen {run.source}", robot, [r for r in runs if r is not run], [run])
        yield Case("three runs, seen", robot, runs, runs)
    elif robot == "kuka_lwr4":
        runs = [real_recording(robot, f"measurements_{i}") for i in (1, 2)]
        yield Case("run 1, unseen run 2 (the same motion again)", robot, runs[:1], runs[1:])
        halves = [[run.slice(part(run)) for run in runs] for part in (_first_half, _second_half)]
        yield Case("first halves of both runs, unseen second halves", robot, *halves)
        yield Case("second halves of both runs, unseen first halves", robot, *halves[::-1])
    elif robot == "franka_panda":
        run = real_recording(robot, "exciting_1")
        yield Case("0 to 10 s, unseen 10 to 14 s", robot, [run.slice(run.time < 10)], [run.slice(run.time >= 10)])
        yield Case("4 to 14 s, unseen 0 to 4 s", robot, [run.slice(run.time >= 4)], [run.slice(run.time < 4)])
    else:
        run = real_recording(robot, "record_1")
        wrist = {"coupled": [("joint_5", "joint_6")]}
        parts = run.slice(run.time < 4), run.slice(run.time >= 4)
        yield Case("0 to 4 s, unseen 4 to 6 s, coupled wrist", robot, [parts[0]], [parts[1]], wrist)
        yield Case("0 to 4 s, unseen 4 to 6 s, wrist taken as uncoupled", robot, [parts[0]], [parts[1]])


def main() -> None:
    """Print a table for each robot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", choices=URDFS, action="append")
    parser.add_argument("--estimator", action="append", help="default: consistent and weighted")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(MISSING)
    for robot in options.robot or URDFS:
        for case in cases(robot):
            judge(case, options.estimator or ["consistent", "weighted"])


def judge(case: Case, estimators: list[str]) -> None:
    """Fit by each estimator and predict."""
    model = real_robot(case.robot)
    print(f"\n{case.robot}: {case.name}")
    for estimator in estimators:
        start = time.perf_counter()
        result = LinkIdentification(model, estimator=estimator, **case.settings).fit(*case.fitted)
        seconds = time.perf_counter() - start
        for recording in case.unseen:
            show(f"{estimator} ({seconds:.1f} s)", result.validate(recording))
    for recording in case.unseen:
        show("URDF, friction fitted", result.urdf_model.validate(recording))


def show(label: str, validation: Validation) -> None:
    """One line."""
    cells = "".join(f"{r:8.3f} ({s:4.0%})" for r, s in zip(validation.rms, validation.relative_rms, strict=True))
    print(f"  {label:<24}{cells}   sum {np.sum(validation.rms):.2f}", flush=True)


def _first_half(run: Recording) -> slice:
    return slice(0, run.n_samples // 2)


def _second_half(run: Recording) -> slice:
    return slice(run.n_samples // 2, None)


if __name__ == "__main__":
    main()
