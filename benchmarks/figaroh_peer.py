"""FIGAROH's side of `benchmarks.figaroh`, in its own process and, if necessary, its own Python environment.

It reads a line of JSON per task and answers with one. It depends on figaroh only.
"""

import contextlib
import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

logging.disable(logging.CRITICAL)  # it warns that friction has no nominal values

import numpy as np  # noqa: E402
import pinocchio  # noqa: E402
from figaroh.identification.base_identification import BaseIdentification  # noqa: E402
from figaroh.identification.identification_tools import relative_stdev  # noqa: E402

ZERO_COLUMN_TOLERANCE = 1e-3
"""Tolerance of `BaseIdentification.solve` for columns without effect, by default."""


class SampleIdentification(BaseIdentification):
    """FIGAROH's identification, from samples in memory instead of files."""

    def __init__(self, robot: SimpleNamespace, friction: bool, samples: list[np.ndarray]):
        self.samples, self.friction = samples, friction
        super().__init__(robot, "")

    def load_param(self, config_file, setting_type="identification"):  # noqa: ARG002, D102
        n = self.model.nv
        self.identif_config = {
            "robot_name": self.model.name,
            "active_joints": list(self.model.names[1:]),
            "act_idxv": list(range(n)),
            "is_joint_torques": True,
            "has_friction": self.friction,
            "has_actuator_inertia": False,
            "has_joint_offset": False,
            "fv": [0.0] * n,
            "fs": [0.0] * n,
        }

    def load_trajectory_data(self, data_source=None):  # noqa: D102
        raise NotImplementedError  # the samples are arguments

    def process_data(self, truncate=None):  # noqa: ARG002, D102
        names = ("positions", "velocities", "accelerations", "torques")
        self.processed_data = dict(zip(names, self.samples, strict=True))
        self.num_samples = len(self.samples[0])

    def steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute the estimates without the additional work of `solve`: condition number, validation, summary.

        Returns:
        Ordinary and weighted least squares, each as a vector of all columns that is zero outside the base columns,
        and relative standard deviations in percent.
        """
        self.process_data()
        self.calculate_full_regressor()
        self.initialize_standard_parameters()
        reduced, active = self._eliminate_zero_columns(ZERO_COLUMN_TOLERANCE)
        torque, reduced = self._prepare_undecimated_data(reduced)
        self._calculate_base_parameters(torque, reduced, active)
        errors = relative_stdev(self.dynamic_regressor_base, self.phi_base, self.tau_noised)
        weighted, _ = self._apply_weighted_least_squares()
        kept = np.delete(np.arange(self.dynamic_regressor.shape[1]), self._idx_eliminated)[self._base_indices]
        solutions = np.zeros((2, self.dynamic_regressor.shape[1]))
        solutions[:, kept] = self.phi_base, weighted
        return (*solutions, errors)


def read_robot(task: dict) -> SimpleNamespace:
    """Return the arm in Pinocchio; joints outside the chain are locked."""
    model = pinocchio.buildModelFromUrdf(task["urdf"])
    others = [model.getJointId(name) for name in model.names[1:] if name not in task["joints"]]
    model = pinocchio.buildReducedModel(model, others, pinocchio.neutral(model))
    model.gravity.linear = np.array(task["gravity"])
    return SimpleNamespace(model=model, data=model.createData())


def seconds(function: Callable[[], object]) -> float:
    """Return the processor time of one call, s, which hardly depends on other processes."""
    start = time.process_time()
    function()
    return time.process_time() - start


def regressors(robot: SimpleNamespace, samples: list[np.ndarray], kept: np.ndarray | None) -> None:
    """Compute Pinocchio's regressor of each sample in a loop, and keep or drop the results."""
    compute = pinocchio.computeJointTorqueRegressor
    for k, (q, qd, qdd) in enumerate(zip(*samples[:3], strict=True)):
        regressor = compute(robot.model, robot.data, q, qd, qdd)
        if kept is not None:
            kept[k] = regressor


def resident(which: str) -> int:
    """Return the resident set of this process in bytes, now ("VmRSS") or its maximum ("VmHWM")."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in status if line.startswith(which))


def answer(task: dict, robot: SimpleNamespace, samples: list[np.ndarray]) -> object:
    """Return the result of one task."""
    n = robot.model.nv
    if task["what"] == "dropped":
        return seconds(lambda: regressors(robot, samples, None))
    if task["what"] == "kept":
        return seconds(lambda: regressors(robot, samples, np.empty((len(samples[0]), n, 10 * n))))
    identification = SampleIdentification(robot, task["friction"], samples)
    if task["what"] == "steps":
        return seconds(identification.steps)
    if task["what"] == "solve":

        def whole():
            identification.initialize()
            identification.solve(decimate=False, plotting=False, wls=True)

        return seconds(whole)
    if task["what"] == "estimates":
        ordinary, weighted, _ = identification.steps()
        return [ordinary.tolist(), weighted.tolist()]
    if task["what"] == "memory":
        before = resident("VmRSS")
        identification.steps()
        return resident("VmHWM") - before
    raise ValueError(task["what"])


def main() -> None:
    """Answer tasks until the input ends; FIGAROH's output goes to the standard error."""
    answers = sys.stdout
    first = json.loads(sys.stdin.readline())
    robot = read_robot(first)
    samples = [np.load(path) for path in first["samples"]]
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            result = answer(json.loads(line), robot, samples)
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()
