"""Link identification against FIGAROH on the same samples: time, memory, and equality of the estimates.

    python -m benchmarks.figaroh [--python /other/venv/bin/python] [--samples 10000] [--rounds 7]

Random positions, velocities and accelerations of the Panda and the UR10 of package example-robot-data; torques with
noise, and with viscous and Coulomb friction where friction is identified. Both packages determine the base parameters,
ordinary and weighted least squares, standard errors, the condition number and residuals, on one thread: ours by
`LinkIdentification.fit_samples`, FIGAROH by `BaseIdentification.initialize` and `solve`. The time of FIGAROH's steps
without the additional work of `solve` (condition number, prediction of the same samples, summary) is shown too. The two
alternate in rounds; medians of the ratios of processor times are compared. Memory is the growth of the resident set of
a new process; for FIGAROH it is that of the steps.

Pinocchio's regressor is called in a Python loop, as FIGAROH does, and the result of each sample is dropped or kept in
one array. It is compared with our regressor in blocks that are dropped, and with the whole array.

FIGAROH is not a dependency. Run `pip install figaroh==1.0.2` in this environment, or in another one and pass its Python
as `--python`; without FIGAROH the benchmark is skipped with a message. This environment needs
`pip install pytest example-robot-data`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from dynid_ros.estimation.least_squares import solve
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.equations import SampleEquations
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import BLOCK, blocks
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.model.regressor import RegressorRows

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test"))
from pinocchio_arm import REGRESSOR_ORDER, example_urdf  # noqa: E402

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "ur10": ("ur_description/urdf/ur10_robot.urdf", "tool0"),
}
MIN_SPEEDUP_WITH_FRICTION = 30.0
MIN_SPEEDUP_LINKS = 15.0
MIN_SPEEDUP_REGRESSOR = 2.0
MIN_MEMORY_RATIO = 15.0
MAX_DIFFERENCE = 1e-9
TORQUE_NOISE_NM = 0.1
LARGE_SAMPLE_COUNTS = (100_000, 1_000_000)
BYTES_PER_MEGABYTE = 1e6


def random_samples(robot: RobotModel, n_samples: int, friction: bool) -> list[np.ndarray]:
    """Return random positions, velocities, accelerations and torques (N, n)."""
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-2.0, 2.0, (3, n_samples, robot.n_joints))
    torque = robot.inverse_dynamics(q, qd, qdd)
    for block in blocks(n_samples):
        torque[block] += TORQUE_NOISE_NM * rng.normal(size=torque[block].shape)
        if friction:
            torque[block] += 0.5 * qd[block] + 0.3 * np.sign(qd[block])
    return [q, qd, qdd, torque]


def joint_friction(friction: bool) -> JointFriction:
    """Return viscous and Coulomb friction, as in FIGAROH, or none."""
    return JointFriction() if friction else JointFriction.none()


def identify(robot: RobotModel, friction: bool, samples: Sequence[np.ndarray], estimator: str = "weighted"):
    """Return the result of our identification."""
    return LinkIdentification(
        robot, friction=FrictionModel(joint_friction(friction)), estimator=estimator, errors="white"
    ).fit_samples(*samples)


class Peer:
    """A process that runs FIGAROH on samples in files."""

    def __init__(self, python: str, robot: RobotModel, urdf: Path, files: Sequence[str]):
        command = [python, "-I", str(ROOT / "benchmarks/figaroh_peer.py")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.ask(urdf=str(urdf), joints=robot.joint_names, gravity=robot.gravity.tolist(), samples=list(files))

    def ask(self, **task):
        """Return the answer to one task."""
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        if not (line := self.process.stdout.readline()):
            raise SystemExit(f"FIGAROH ended during {task}; run benchmarks/figaroh_peer.py by hand to see its messages")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait()


def seconds(function: Callable[[], object]) -> float:
    """Return the processor time of one call, s, which hardly depends on other processes."""
    start = time.process_time()
    function()
    return time.process_time() - start


def difference(robot: RobotModel, peer: Peer, friction: bool, samples: Sequence[np.ndarray]) -> list[float]:
    """Return the largest differences of base parameters, by ordinary and by weighted least squares.

    A difference is relative to the estimate, or to its standard error if that is larger, because some parameters are
    zero. FIGAROH weights a joint once, by its residual of ordinary least squares; ours iterates the weights. Therefore
    FIGAROH's weights are used in our equations here.
    """
    result = identify(robot, friction, samples, "ordinary")
    columns = LinkColumns(robot, [(joint_friction(friction),)] * robot.n_joints)
    problem = WeightedProblem(SampleEquations(robot, *samples).factors(columns), np.arange(columns.size))
    weighted = solve(*problem.stacked(problem.residual_rms(result.base_parameters.values))).solution
    n_links = robot.parameters.size
    differences = []
    our_estimates = (result.base_parameters.values, weighted)
    for ours, estimates in zip(our_estimates, peer.ask(what="estimates", friction=friction), strict=True):
        links, terms = np.split(np.array(estimates), [n_links])
        links = links.reshape(-1, 10)[:, REGRESSOR_ORDER].ravel()
        terms = terms.reshape(-1, robot.n_joints)[::-1].T.ravel()  # FIGAROH: viscous of all joints, then Coulomb of all
        theirs = result.base.project(np.concatenate([links, terms]))
        size = np.maximum(np.abs(ours), result.base_parameters.standard_errors)
        differences.append(float(np.max(np.abs(theirs - ours) / size)))
    return differences


def drop_regressors(robot: RobotModel, samples: Sequence[np.ndarray]) -> None:
    """Compute our regressors in blocks, each of which overwrites the one before."""
    rows = RegressorRows(robot.chain, robot.gravity)
    matrix = np.empty((robot.n_joints, robot.parameters.size, min(BLOCK, len(samples[0]))))
    for block in blocks(len(samples[0])):
        part = [array[block] for array in samples[:3]]
        rows.fill(matrix[:, :, : len(part[0])], *part)


def resident(which: str) -> int:
    """Return the resident set of this process in bytes, now ("VmRSS") or its maximum ("VmHWM")."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in status if line.startswith(which))


def growth(name: str, friction: bool, files: Sequence[str]) -> float:
    """Return the maximum growth of the resident set of a new process by an identification, MB."""
    command = [sys.executable, "-m", "benchmarks.figaroh", "--measure", name, str(int(friction)), *files]
    return float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def measure(name: str, friction: str, *files: str) -> None:
    """Print the growth of the resident set of this process by an identification, MB."""
    path, tip = ROBOTS[name]
    robot = RobotModel.from_urdf(example_urdf(path), tip=tip)
    samples = [np.load(file) for file in files]
    before = resident("VmRSS")
    identify(robot, bool(int(friction)), samples)
    print((resident("VmHWM") - before) / BYTES_PER_MEGABYTE)


def verdict(ratio: float, goal: float) -> str:
    """Return a ratio with its goal as text."""
    return f"{ratio:.1f} times (at least {goal:g}): {'met' if ratio >= goal else 'NOT MET'}"


def compare(name: str, arguments: argparse.Namespace, folder: Path) -> None:
    """Print all comparisons for one robot."""
    path, tip = ROBOTS[name]
    robot = RobotModel.from_urdf(example_urdf(path), tip=tip)

    def saved(n_samples: int, friction: bool) -> tuple[list[np.ndarray], list[str]]:
        samples = random_samples(robot, n_samples, friction)
        files = [str(folder / f"{name}_{n_samples}_{int(friction)}_{i}.npy") for i in range(len(samples))]
        for file, array in zip(files, samples, strict=True):
            np.save(file, array)
        return samples, files

    print(f"{name}: {robot.n_joints} joints, {arguments.samples} samples, median of {arguments.rounds} rounds")
    for friction, goal in ((True, MIN_SPEEDUP_WITH_FRICTION), (False, MIN_SPEEDUP_LINKS)):
        samples, files = saved(arguments.samples, friction)
        peer = Peer(arguments.python, robot, example_urdf(path), files)
        identification(robot, peer, friction, samples, rounds=arguments.rounds, goal=goal)
        if friction:
            regressor(robot, peer, samples, arguments.rounds)
        peer.close()
        fresh = Peer(arguments.python, robot, example_urdf(path), files)
        theirs = fresh.ask(what="memory", friction=friction) / BYTES_PER_MEGABYTE
        mine = growth(name, friction, files)
        fresh.close()
        print(f"    memory {mine:.1f} MB, FIGAROH {theirs:.0f} MB: {verdict(theirs / mine, MIN_MEMORY_RATIO)}")
    for n_samples in LARGE_SAMPLE_COUNTS:
        _, files = saved(n_samples, True)
        print(f"  memory for {n_samples} samples: {growth(name, True, files):.1f} MB")
        for file in files:
            Path(file).unlink()


def identification(
    robot: RobotModel, peer: Peer, friction: bool, samples: Sequence[np.ndarray], *, rounds: int, goal: float
) -> None:
    """Print how complete identifications compare."""
    times = np.array(
        [
            (
                seconds(lambda: identify(robot, friction, samples)),
                peer.ask(what="steps", friction=friction),
                peer.ask(what="solve", friction=friction),
            )
            for _ in range(rounds)
        ]
    )
    ours, steps, whole = np.median(times, axis=0) * 1e3
    faster, faster_than_whole = np.median(times[:, 1:] / times[:, :1], axis=0)
    print(f"  {'links and friction' if friction else 'links alone'}: {ours:.1f} ms")
    print(f"    FIGAROH {whole:.0f} ms: {verdict(faster_than_whole, goal)}")
    print(f"    its steps alone {steps:.0f} ms: {faster:.1f} times")
    ordinary, weighted = difference(robot, peer, friction, samples)
    equal = "met" if max(ordinary, weighted) <= MAX_DIFFERENCE else "NOT MET"
    print(f"    estimates differ by {ordinary:.1e}, weighted {weighted:.1e} (at most {MAX_DIFFERENCE:g}): {equal}")


def regressor(robot: RobotModel, peer: Peer, samples: Sequence[np.ndarray], rounds: int) -> None:
    """Print how the regressors compare."""
    for kind, ours in (
        ("dropped", lambda: drop_regressors(robot, samples)),
        ("kept", lambda: robot.torque_regressor(*samples[:3])),
    ):
        times = np.array([(seconds(ours), peer.ask(what=kind, friction=True)) for _ in range(rounds)])
        mine, theirs = np.median(times, axis=0) * 1e3
        ratio = verdict(float(np.median(times[:, 1] / times[:, 0])), MIN_SPEEDUP_REGRESSOR)
        print(f"  regressors {kind:8s} {mine:6.1f} ms, Pinocchio in a loop {theirs:6.1f} ms: {ratio}")


def main() -> None:
    """Print times, ratios, differences and memory."""
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="Python interpreter with figaroh")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    if subprocess.run([arguments.python, "-I", "-c", "import figaroh"], capture_output=True, check=False).returncode:
        print(
            f"SKIPPED: {arguments.python} cannot import figaroh. Run `pip install figaroh==1.0.2` there, or in another "
            "environment and pass its Python as --python"
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in ROBOTS:
            compare(name, arguments, Path(folder))


if __name__ == "__main__":
    main()
