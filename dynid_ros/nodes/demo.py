"""Coordinator of the demo: has the nodes identify a simulated arm, what it carries and its sensors, act by act."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dynid_ros.errors import DynidError
from dynid_ros.nodes.demo_flexible import flexible_act
from dynid_ros.nodes.demo_gravity import gravity_act
from dynid_ros.nodes.demo_links import links_act
from dynid_ros.nodes.demo_load import load_act
from dynid_ros.nodes.demo_stage import Stage
from dynid_ros.nodes.demo_torque_sensors import torque_sensor_act
from dynid_ros.nodes.parameters import NodeParameter
from dynid_ros.nodes.robot_description import ROBOT_PARAMETERS
from dynid_ros.nodes.running import ros_process


@dataclass(frozen=True)
class Act:
    """A part of the demo.

    Attributes:
        play: plays it; True if all went well.
        steps: that it announces.
        needs: files below the output folder, and the acts that write them.

    """

    play: Callable[[Stage], bool]
    steps: int
    needs: Mapping[str, str] = field(default_factory=dict)


GRAVITY, LINKS = {"identified.yaml": "gravity"}, {"links/identified.yaml": "links"}
ACTS = {
    "gravity": Act(gravity_act, 5),
    "links": Act(links_act, 3),
    "load": Act(load_act, 6, GRAVITY | LINKS),
    "torque_sensors": Act(torque_sensor_act, 3, GRAVITY),
    "flexible_joint": Act(flexible_act, 3),
}
PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("output", "demo_results", "folder that the identification writes into; the report goes there too"),
    NodeParameter("acts", list(ACTS), "those to play; a later one needs what the ones before left in the folder"),
    NodeParameter("drop_pose", [0.3, 0.6, 0.9, 0.4, 0.5, 0.3], "pose from which the arm is let go, rad"),
    NodeParameter("drop_time", 5.0, "how long it is watched, s"),
    NodeParameter("command_topic", "/joint_trajectory_controller/joint_trajectory", "where the arm takes trajectories"),
)
SERVICES = (
    "/simulator/effort_mode",
    "/simulator/reset",
    "/excitation/design",
    "/excitation/start",
    "/recorder/start",
    "/recorder/stop",
    "/gravity_identification/identify",
    "/gravity_compensation/enable",
    "/link_identification/identify",
)


class Demo(Stage):
    """Plays the acts; not a node to add to a robot, but all that it uses, except for the truth, a robot has as well."""

    def __init__(self) -> None:
        super().__init__("demo", PARAMETERS)

    def play(self) -> bool:
        """Play the acts that were asked for, in their order; True if all verdicts are good.

        Raises:
            DynidError: an act that does not exist, or one that needs what is not there.

        """
        chosen = self._chosen()
        self.call.wait(*SERVICES)
        self.expect(sum(act.steps for act in chosen))
        passed = [act.play(self) for act in chosen]
        return all(passed)

    def _chosen(self) -> list[Act]:
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
        return [act for name, act in ACTS.items() if name in names]


def main() -> None:
    """Run the demo; exit code 0 if all verdicts are good, 1 if not."""
    passed = False
    with ros_process():
        passed = Demo().play()
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
