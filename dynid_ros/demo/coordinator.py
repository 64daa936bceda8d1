"""Coordinator of the demo: has the nodes identify a simulated arm, its load and its sensors, act by act."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from dynid_ros.demo import floating_acts, motion_acts, sensor_acts
from dynid_ros.demo.arm import require_simulation, spin_for
from dynid_ros.demo.page import Act, write_demo_report
from dynid_ros.demo.stage import START_TIMEOUT_S, Stage
from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.child_process import NodeProcess, running
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import ros_process
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS


@dataclass(frozen=True)
class ActPlan:
    """Requirements of an act.

    Attributes:
        play: function that plays the act.
        n_steps: number of steps that it announces.
        needs: acts that write the needed files, by file below the output folder.
        motions: motions of the excitation node, in order.
        is_separate: whether the act has its own arm, and is played by its own process at the same time.
    """

    play: Callable[[Stage], None]
    n_steps: int
    needs: Mapping[str, str] = field(default_factory=dict)
    motions: Sequence[Mapping[str, object]] = ()
    is_separate: bool = False


GRAVITY_FILE = {"gravity/identified.yaml": "gravity"}
LINKS_FILE = {"links/identified.yaml": "links"}
ACTS = {
    "gravity": ActPlan(floating_acts.gravity_act, 4, motions=[floating_acts.GRAVITY_MOTION]),
    "hand_guiding": ActPlan(floating_acts.guiding_act, 1, GRAVITY_FILE),
    "links": ActPlan(motion_acts.links_act, 2, motions=motion_acts.LINKS_MOTIONS),
    "load": ActPlan(motion_acts.load_act, 5, GRAVITY_FILE | LINKS_FILE, [motion_acts.LOAD_MOTION]),
    "torque_sensors": ActPlan(sensor_acts.torque_sensor_act, 2, GRAVITY_FILE, [sensor_acts.SENSORS_MOTION]),
    "flexible_joint": ActPlan(sensor_acts.flexible_act, 2, is_separate=True),
}
PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("output", "demo_results", "folder that the identification writes into; the report goes there too"),
    NodeParameter("acts", list(ACTS), "those to play; a later one needs what the ones before left in the folder"),
    NodeParameter("drop_pose", [0.3, 0.6, 0.9, 0.4, 0.5, 0.3], "pose from which the arm is let go, rad"),
    NodeParameter("drop_time", 5.0, "how long it is watched, s"),
    NodeParameter(
        "command_topic",
        "joint_trajectory_controller/joint_trajectory",
        "where the arm takes trajectories",
        required=True,
    ),
)
SERVICES = (
    "/simulator/activate_effort_controller",
    "/simulator/activate_trajectory_controller",
    "/simulator/reset",
    "/excitation/design",
    "/excitation/start",
    "/recorder/start",
    "/recorder/stop",
    "/gravity_identification/identify",
    "/gravity_compensation/enable",
    "/link_identification/identify",
)
SEPARATE_TIMEOUT_S = 600.0
POLL_PERIOD_S = 0.2


class Demo(Stage):
    """Plays the acts."""

    def __init__(self) -> None:
        super().__init__("demo", PARAMETERS)
        self._seconds: dict[str, float] = {}

    def play(self) -> bool:
        """Play the chosen acts in order, and return whether all passed.

        Raises:
            DynidError: an act does not exist, or needs a file that does not exist.
        """
        start = time.monotonic()
        chosen = self._chosen_acts()
        separate = [name for name in chosen if ACTS[name].is_separate and len(chosen) > 1]
        here = [name for name in chosen if name not in separate]
        for name in chosen:
            self._act_file(name).unlink(missing_ok=True)
        self.expect(sum(ACTS[name].n_steps for name in here) + len(separate))
        try:
            if any(not ACTS[name].is_separate for name in here):
                self.call.wait(*SERVICES, timeout=START_TIMEOUT_S)
                require_simulation(self)
                self.excitation.plan([motion for name in here for motion in ACTS[name].motions])
            with self._separate_processes(separate) as wait_for_others:
                for name in here:
                    act_start = time.monotonic()
                    ACTS[name].play(self)
                    self._seconds[name] = time.monotonic() - act_start
                self.judge()
                wait_for_others()
        finally:
            report = self._write_report(chosen)
        passed = all(self.acts[name].passed for name in chosen)
        verdict = "PASSED" if passed else "FAILED"
        print(f"{verdict}, all in {time.monotonic() - start:.0f} s. Report: {report}", flush=True)
        return passed

    def finish(self, name: str, act: Act) -> None:
        """Print the result of an act and write it, where the process that plays the other acts reads it."""
        super().finish(name, act)
        if name in self._seconds:
            replace(act, seconds=self._seconds[name]).save(self._act_file(name))

    @contextmanager
    def _separate_processes(self, names: Sequence[str]) -> Iterator[Callable[[], None]]:
        """Have acts played by their own processes for the block; yields a function that waits for their ends."""
        output = self.output.resolve()
        processes = {
            name: NodeProcess(
                "demo",
                {"acts": f"[{name}]", "output": output},
                self.logs / f"{name}.log",
                node=f"demo_{name}",
                good=(0, 1),
            )
            for name in names
        }

        def wait() -> None:
            for name, process in processes.items():
                self.announce(f"At the same time act {name} was played; its steps are in {process.log}.")
                deadline = time.monotonic() + SEPARATE_TIMEOUT_S
                while process.check():
                    if time.monotonic() > deadline:
                        raise DynidError(f"act {name} does not end; see {process.log}")
                    spin_for(self, POLL_PERIOD_S)
                if not self._act_file(name).exists():
                    raise process.fault()
                self.finish(name, Act.load(self._act_file(name)))

        with running(self.processes, *processes.values()):
            yield wait

    def _write_report(self, chosen: Sequence[str]) -> Path:
        """Write the page of all acts in the folder, those of earlier runs included."""
        acts = {name: Act.load(self._act_file(name)) for name in ACTS if self._act_file(name).exists()}
        missing = [name for name in chosen if name not in acts]
        return write_demo_report(self.output / "report.html", acts, missing).resolve()

    def _act_file(self, name: str) -> Path:
        return self.output / "acts" / f"{name}.json"

    def _chosen_acts(self) -> list[str]:
        names = self.settings.acts
        for name in names:
            if name not in ACTS:
                raise DynidError(f"there is no act '{name}'; the acts are {', '.join(ACTS)}")
            for file, maker in ACTS[name].needs.items():
                if maker not in names and not (self.output / file).exists():
                    raise DynidError(
                        f"act {name} needs {self.output / file}, which act {maker} writes; play that too, or give the "
                        "output folder of a demo that has"
                    )
        return [name for name in ACTS if name in names]


def main() -> None:
    """Run the demo; the exit code is 0 if all acts passed, else 1."""
    passed = False
    with ros_process():
        passed = Demo().play()
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
