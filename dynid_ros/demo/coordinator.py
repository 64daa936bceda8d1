"""Coordinator of the demo: has the nodes identify a simulated arm, what it carries and its sensors, act by act."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dynid_ros.demo import gravity_act as gravity
from dynid_ros.demo import links_act as links
from dynid_ros.demo import load_act as load
from dynid_ros.demo import torque_sensors_act as torque_sensors
from dynid_ros.demo.calls import require_simulation, spin_for
from dynid_ros.demo.flexible_act import flexible_act
from dynid_ros.demo.guiding_act import guiding_act
from dynid_ros.demo.page import Act as Shown
from dynid_ros.demo.page import write_demonstration_report
from dynid_ros.demo.processes import DemoProcess, running
from dynid_ros.demo.stage import START_TIMEOUT, Stage
from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import ros_process
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS


@dataclass(frozen=True)
class Act:
    """A part of the demo.

    Attributes:
        play: plays it, and leaves to the stage what is to be judged later.
        steps: that it announces.
        needs: files below the output folder, and the acts that write them.
        motions: of the excitation node, in their order.
        beside: it has an arm of its own, and is played beside the others by a process of its own.
    """

    play: Callable[[Stage], None]
    steps: int
    needs: Mapping[str, str] = field(default_factory=dict)
    motions: Sequence[Mapping[str, object]] = ()
    beside: bool = False


GRAVITY, LINKS = {"gravity/identified.yaml": "gravity"}, {"links/identified.yaml": "links"}
ACTS = {
    "gravity": Act(gravity.gravity_act, 4, motions=[gravity.MOTION]),
    "hand_guiding": Act(guiding_act, 1, GRAVITY),
    "links": Act(links.links_act, 2, motions=links.MOTIONS),
    "load": Act(load.load_act, 5, GRAVITY | LINKS, [load.MOTION]),
    "torque_sensors": Act(torque_sensors.torque_sensor_act, 2, GRAVITY, [torque_sensors.MOTION]),
    "flexible_joint": Act(flexible_act, 2, beside=True),
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
BESIDE_TIMEOUT = 600.0
POLL = 0.2


class Demo(Stage):
    """Plays the acts; not a node to add to a robot, but all that it uses, except for the truth, a robot has as well."""

    def __init__(self) -> None:
        super().__init__("demo", PARAMETERS)
        self._seconds: dict[str, float] = {}

    def play(self) -> bool:
        """Play the acts that were asked for, in their order; True if all verdicts are good.

        Raises:
            DynidError: an act that does not exist, or one that needs what is not there.
        """
        began = time.monotonic()
        chosen = self._chosen()
        beside = [name for name in chosen if ACTS[name].beside and len(chosen) > 1]
        own = [name for name in chosen if name not in beside]
        for name in chosen:
            self._kept(name).unlink(missing_ok=True)
        self.expect(sum(ACTS[name].steps for name in own) + len(beside))
        try:
            if any(not ACTS[name].beside for name in own):
                self.call.wait(*SERVICES, timeout=START_TIMEOUT)
                require_simulation(self)
                self.excitation.plan([motion for name in own for motion in ACTS[name].motions])
            with self._beside(beside) as wait_for_others:
                for name in own:
                    self._play(name)
                self.judge()
                wait_for_others()
        finally:
            report = self._report(chosen)
        passed = all(self.acts[name].passed for name in chosen)
        print(
            f"{'PASSED' if passed else 'FAILED'}, all in {time.monotonic() - began:.0f} s. Report: {report}", flush=True
        )
        return passed

    def passed_or_failed(self, name: str, act: Shown) -> None:
        """As above; the process that plays the other acts finds the verdict in a file."""
        super().passed_or_failed(name, act)
        act.took(self._seconds[name]).save(self._kept(name))

    def _play(self, name: str) -> None:
        began = time.monotonic()
        ACTS[name].play(self)
        self._seconds[name] = time.monotonic() - began

    @contextmanager
    def _beside(self, names: Sequence[str]) -> Iterator[Callable[[], None]]:
        """Have acts played by processes of their own; what is given waits for their ends."""
        output = self.output.resolve()
        processes = {
            name: DemoProcess(
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
                self.announce(f"Beside all this, act {name} was played; its steps are in {process.log}.")
                deadline = time.monotonic() + BESIDE_TIMEOUT
                while process.check():
                    if time.monotonic() > deadline:
                        raise DynidError(f"act {name} does not come to its end; see {process.log}")
                    spin_for(self, POLL)
                if not self._kept(name).exists():
                    raise process.fault()
                super(Demo, self).passed_or_failed(name, Shown.load(self._kept(name)))

        with running(self.processes, *processes.values()):
            yield wait

    def _report(self, chosen: Sequence[str]) -> Path:
        """The page of all acts in the folder, also of those that were played before."""
        shown = {name: Shown.load(self._kept(name)) for name in ACTS if self._kept(name).exists()}
        missing = tuple(name for name in chosen if name not in shown)
        return write_demonstration_report(self.output / "report.html", shown, missing).resolve()

    def _kept(self, name: str) -> Path:
        return self.output / "acts" / f"{name}.json"

    def _chosen(self) -> list[str]:
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
    """Run the demo; exit code 0 if all verdicts are good, 1 if not."""
    passed = False
    with ros_process():
        passed = Demo().play()
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
