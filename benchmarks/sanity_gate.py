"""Sanity checks of recordings: detection rate of faults, and rate of false alarms.

    python -m benchmarks.sanity_gate [--good 500] [--each 100] [--splits develop public …] [--kinds …]

Sound recordings are Fourier motions, slow and fast ones, joints turned one by one with dwells while the others are
held, and moves with stops, of arms of package example-robot-data, industrial arms and random chains. They have six
friction laws, noise, quantization, jitter and latencies of up to 8 ms; some use MuJoCo's dynamics. The masses, mass
moments and inertias of the URDF err by up to 30 %. Arms, laws and seeds are split (test/gate_arms.py): thresholds are
chosen on `develop`; the other splits are for judging, with seeds other than 0. The recordings of real arms in the
folder DYNID_DATA are sound too, except for the faults that their README reports. A false alarm is any other finding in
a sound recording. Each kind of fault is put `--each` times into sound recordings of each split, and once into each
recording of a real arm in motion. Smallest sizes of the faults:
- motor current: in A or mA at 5 to 60 N m / A, different per joint, or torque before a gear of 30 to 160
- gravity compensated: by a driver whose model errs by up to 10 %
- signs and swaps: of one joint's torque or position, of two joints, of joints whose torque varies by at least 2 % of
  the arm's largest; not where positions exceed the limits by more than pi, which is detected separately
- gravity direction: wall, ceiling, or a tilt of 20 to 60 degrees; a base tilted by 5 degrees where it matters
- a position's ratio: half or twice where it matters, or before a gear of 30 to 160
- a link's origin: 10 cm off in any direction, in fast motion, where it matters
- "where it matters": the best parameters and friction leave 5 % of a joint's torque, a third more than the right model
- time lag: 20 to 100 ms either way; all torques 20 ms late
- encoder zero: 5 to 20 degrees off, where it matters
- one torque in raw counts, 100 to 2000 for 1 N m, or in percent of 5 to 50 N m; all in percent of the effort limits
- clipped: values that 5 to 20 % of the samples exceed; constant: all samples
- encoder step: 3 to 50 mrad (mm), permanent
- torque frozen for 0.2 to 2 s in which it would change by a tenth of its size; exactly 0 in 5 to 35 % of the samples,
  in stretches of 1 to 50
- gaps: 2 to 20 of 25 ms and more; repeated rows: 5 to 50 %
- too little motion: 0.1 to 1.1 degrees to either side; a joint at rest; 0.5 to 2.5 s; all joints at rest
- low-passed: torques at 0.3 to 0.7, or everything at 0.5 to 1 of the highest frequency of the motion
- drift: friction that falls by 20 to 50 %, offsets that change by as much of the friction, in arms with friction of at
  least a fifth of the torque of a joint
- absurd values: degrees, a torque of 1e6 in one to four samples, an encoder that wraps or jumps by 1 rad and more
- other robot: a URDF with as many joints in another arrangement

A fault is detected if a finding of its kind names it; findings with any error, which stop the fit, are counted too.
Faults of channels are checked without a robot. Needs `pip install pytest pin example-robot-data mujoco`.
"""

import dynid_ros.one_thread  # noqa: F401, I001

import argparse
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from dynid_ros.model import RobotModel
from dynid_ros.recording import EffortConvention, Recording, check
from dynid_ros.signals import choose_cutoff, differentiate, resample

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test"))
from clean_recordings import Case  # noqa: E402
from gate_arms import SPLITS  # noqa: E402
from gate_recordings import sound_case  # noqa: E402
from recording_faults import FAULTS  # noqa: E402

UR10E_GAINS = (11.976, 11.976, 9.839, 10.763, 10.763, 10.763)
"""Torque per current, N m/A, from the README of the data; the last one is assumed there."""
FRICTION = {
    "ur10e": ((12.5, 13.3, 5.0, 2.0, 2.7, 2.3), (21.3, 20.2, 10.4, 3.6, 2.5, 3.0)),
    "staubli_tx40": ((7.1, 8.3, 6.3, 2.5, 3.0, 0.3), (8.05, 5.53, 1.97, 1.11, 1.86, 0.65)),
}
"""Published Coulomb friction, N m, and viscous friction, N m s/rad; the torque sensors of the others see little."""
MAX_DRAWS_PER_FAULT = 60
"""Recordings drawn for each fault that is put, since a fault does not matter in every recording."""
TRUE_FINDINGS = {"franka_panda": {"repeated rows"}}
"""Findings that the README of the recordings confirms."""


def real_cases(data: Path) -> Iterator[tuple[Case, bool]]:
    """Yield recordings of real arms, and whether all joints move in them."""
    for arm, tip, urdf in (
        ("ur10e", "tool0", "ur10e.urdf"),
        ("kuka_lwr4", None, "kuka_lwr4.urdf"),
        ("franka_panda", None, "panda_dh.urdf"),
        ("staubli_tx40", None, "tx40_mdh_modified.urdf"),
    ):
        robot = RobotModel.from_urdf(data / arm / urdf, tip)
        for path in sorted((data / arm / "develop").glob("*.npz")):
            recording = staubli(path, robot) if arm == "staubli_tx40" else read(path, robot, arm)
            coulomb, viscous = FRICTION.get(arm, (np.zeros(robot.n_joints),) * 2)
            speed = np.abs(np.gradient(recording.position, recording.time, axis=0)).mean(axis=0)
            friction = np.asarray(coulomb) + np.asarray(viscous) * speed
            gravity = gravity_torque(robot, recording)
            moves = bool(np.all(np.ptp(recording.position, axis=0) > 0.1))
            source = f"{arm} {path.stem}"
            recording = replace(recording, source=source)
            yield (
                Case(source, robot, recording, friction, gravity, bandwidth(recording) if moves else 0.0, False),
                moves,
            )


def read(path: Path, robot: RobotModel, arm: str) -> Recording:
    """Return the recording of an arm whose file has joint positions."""
    convention = EffortConvention("motor_current", UR10E_GAINS) if arm == "ur10e" else None
    return Recording.read(path, robot.joint_names, effort_convention=convention)


def bandwidth(recording: Recording) -> float:
    """Return the frequency below which each joint has 99 % of its acceleration, at most 10 Hz because of noise."""
    uniform = resample(recording.time, recording.position)
    longest = max((segment.values for segment in uniform.segments), key=len)
    return float(min(10.0, np.nanmax(choose_cutoff(longest, uniform.rate, 0.99).bands)))


def gravity_torque(robot: RobotModel, recording: Recording) -> np.ndarray:
    """Return the gravity torque (N, n) of the arm with its tool: the part that gravity moments explain."""
    rows = slice(None, None, max(1, recording.n_samples // 2000))
    velocity, acceleration = differentiate(recording.time, recording.position, 0.1)
    q, qd, qdd = (array[rows] for array in (recording.position, velocity, acceleration))
    inertial = robot.inverse_dynamics(q, qd, qdd) - robot.gravity_torque(q)
    gravity = robot.gravity_regressor(q)
    n = robot.n_joints
    others = np.zeros((len(q), n, 4 * n))
    for k, values in enumerate((np.ones_like(q), np.tanh(qd / 0.01), qd, inertial)):
        others[:, range(n), range(k * n, k * n + n)] = values
    columns = np.concatenate([gravity, others], axis=2)
    solution = np.linalg.lstsq(columns.reshape(-1, columns.shape[2]), recording.torque[rows].ravel(), rcond=1e-6)[0]
    return robot.gravity_torque(recording.position, solution[: gravity.shape[2]])


def staubli(path: Path, robot: RobotModel) -> Recording:
    """Return the recording at the joints, from motor signals, according to the README: the wrist is coupled."""
    arrays = np.load(path)
    gears = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    position_gears = gears.copy()
    torque_gears = gears.copy()
    position_gears[5, 4] = torque_gears[4, 5] = 32.0
    position = arrays["q_motor"] @ np.linalg.inv(position_gears).T + [0, -np.pi / 2, np.pi / 2, 0, 0, 0]
    time = np.arange(len(position)) / 5000.0
    torque = arrays["torque_motor"] @ torque_gears.T
    return Recording(robot.joint_names, time, position, np.full_like(position, np.nan), torque)


class Tally:
    """Numbers of faults that were put, detected by name, and stopped by any error, by kind and origin."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(3, int))

    def put(self, name: str, case: Case, rng: np.random.Generator, origin: str) -> bool:
        """Check a case with a fault; return False if the fault would not matter there."""
        kind = FAULTS[name]
        faulty = kind.put(case, rng)
        if faulty is None:
            return False
        findings = check(faulty.recording) if kind.channel else check(faulty.recording, faulty.robot, motion=True)
        named = kind.found(findings)
        stopped = any(finding.severity == "error" for finding in findings)
        self.counts[name, origin] += (1, named, named or stopped)
        return True

    def report(self) -> None:
        """Print a row for each kind, and the sums."""
        for origin in dict.fromkeys(origin for _, origin in self.counts):
            print(f"\n{origin:24s}  faults  found by name  found or stopped")
            counts = {name: count for (name, put), count in self.counts.items() if put == origin}
            for name, (put, named, stopped) in {**counts, "all": sum(counts.values())}.items():
                print(f"{name:24s}  {put:6d}  {named:13d}  {stopped:16d}")


def good(split: str, options: argparse.Namespace) -> None:
    """Print the number of false alarms in sound recordings of a split, and the time of a check."""
    alarms: dict[str, int] = defaultdict(int)
    counts: dict[str, int] = defaultdict(int)
    seconds = []
    for k in tqdm(range(options.good), f"{split}: good", disable=None):
        case = sound_case(np.random.default_rng([SPLITS[split].seed + options.seed, k]), split)
        start = time.process_time()
        findings = check(case.recording, case.robot, motion=True)
        seconds.append(time.process_time() - start)
        counts[case.motion] += 1
        alarms[case.motion] += bool(findings)
    if seconds:
        total = sum(alarms.values())
        print(f"{split}: {total} false alarms in {options.good} ({100 * total / options.good:.1f} %)")
        print("  " + ", ".join(f"{motion} {alarms[motion]} of {counts[motion]}" for motion in sorted(counts)))
        print(
            f"  processor time of a check: median {np.median(seconds):.2f} s, longest {max(seconds):.2f} s", flush=True
        )


def faults(split: str, options: argparse.Namespace, tally: Tally) -> None:
    """Put each kind of fault into recordings of a split."""
    for number, name in enumerate(FAULTS):
        if name not in options.kinds:
            continue
        rng = np.random.default_rng([SPLITS[split].seed + options.seed, number, 1])
        put = 0
        for _ in tqdm(range(MAX_DRAWS_PER_FAULT * options.each), f"{split}: {name}", disable=None):
            put += put < options.each and tally.put(
                name, sound_case(rng, split, str(rng.choice(FAULTS[name].motions))), rng, split
            )
            if put >= options.each:
                break
        counts = tally.counts[name, split]
        print(f"  {split}: {name}: {counts[1]} of {counts[0]} found by name", flush=True)


def real(data: Path, options: argparse.Namespace, tally: Tally) -> None:
    """Check real recordings, unchanged and with each fault."""
    cases = list(real_cases(data))
    alarms = 0
    for case, moves in cases:
        findings = check(case.recording, case.robot, motion=moves)
        alarms += any(f.kind not in TRUE_FINDINGS.get(case.name.split()[0], set()) for f in findings)
        print(f"{case.name}: {sorted({finding.kind for finding in findings}) or 'nothing'}")
    print(f"real: {alarms} false alarms in {len(cases)}")
    rng = np.random.default_rng(options.seed)
    for name in tqdm(options.kinds, "real", disable=None):
        for case, moves in cases:
            if moves:
                tally.put(name, case, rng, "real")


def main() -> None:
    """Print the false alarms and the detected faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--good", type=int, default=500, help="sound recordings of each split")
    parser.add_argument("--each", type=int, default=100, help="faults of each kind in each split")
    parser.add_argument("--splits", nargs="+", choices=list(SPLITS), default=list(SPLITS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", choices=list(FAULTS), default=list(FAULTS))
    options = parser.parse_args()
    tally = Tally()
    for split in options.splits:
        good(split, options)
        faults(split, options, tally)
    if "DYNID_DATA" in os.environ:
        real(Path(os.environ["DYNID_DATA"]), options, tally)
    tally.report()


if __name__ == "__main__":
    main()
