"""Answers that the page has collected, and the parameters of the nodes that follow from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dynid_ros.errors import DynidError
from dynid_ros.recording.effort import EFFORT_KINDS, IMPEDANCE

EXPERIMENT_NODES: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "gravity": ("gravity_identification", {"motion": "static_rotation", "target": ""}),
    "links": ("link_identification", {"motion": "fourier", "target": ""}),
    "load": ("load_identification", {"motion": "fourier", "target": "load"}),
    "flexible joints": ("flexible_joint_identification", {"motion": "fourier", "target": ""}),
    "torque sensors": ("torque_sensor_calibration", {"motion": "static_rotation", "target": ""}),
}
"""Node and motion of each identification, as `identify.launch.py` has them."""
ROUTE_PARAMETERS: Mapping[str, Mapping[str, object]] = {
    "effort": {"output": "effort", "controller": "forward_effort_controller"},
    "feedforward": {
        "output": "effort",
        "controller": "forward_effort_controller",
        "position_controller": "",
        "assume_no_effort": True,
    },
    "trajectory": {"output": "trajectory", "controller": "joint_trajectory_controller"},
}
"""Parameters of gravity_compensation on each route, as `controller_stack.launch.py` has them."""
EFFORT_CONVENTIONS = tuple(kind for kind in EFFORT_KINDS if kind != IMPEDANCE)
"""Meanings of effort that the page offers; impedance needs further parameters, which a parameter file has."""


@dataclass
class Answers:
    """What the user has answered so far.

    Attributes:
        urdf: URDF of the robot.
        output: folder of all results; nothing outside of it is written.
        namespace: namespace of the nodes with a leading `/`; empty: none.
        tip: last link of the chain; empty: the flange.
        acceleration_limit: rad/s² (m/s²), for all joints; 0: that of URDF or parameter file.
        floor_height: lowest height of links above the base, m.
        obstacles: file of boxes in `output`; empty: none.
        effort_convention: meaning of effort in joint states.
        motor_gains: gains as text, one per joint; empty: none.
        route: key of `ROUTE_PARAMETERS`.
        files: ROS parameter files with further parameters.
    """

    urdf: Path
    output: Path
    namespace: str = ""
    tip: str = ""
    acceleration_limit: float = 2.0
    floor_height: float = 0.0
    obstacles: str = ""
    effort_convention: str = EFFORT_CONVENTIONS[0]
    motor_gains: str = ""
    route: str = "effort"
    files: tuple[Path, ...] = ()

    @property
    def motion_file(self) -> Path:
        """File of the last designed motion."""
        return self.output / "motion.yaml"

    def folder(self, experiment: str) -> Path:
        """Return the folder of the results of an experiment."""
        return self.output / experiment.replace(" ", "_")

    def model_file(self) -> Path:
        """Return the newest identified.yaml of the arm.

        Raises:
            DynidError: nothing was identified yet.
        """
        files = [self.folder(kind) / "identified.yaml" for kind in ("gravity", "links")]
        files = [file for file in files if file.is_file()]
        if not files:
            raise DynidError("there is no model yet: identify gravity or links first, in step 5")
        return max(files, key=lambda file: file.stat().st_mtime)

    def parameters(self, node: str) -> dict[str, object]:
        """Return the parameters with which a node is started."""
        values: dict[str, object] = {} if node == "recorder" else {"robot_description": self.urdf}
        if self.tip and node != "recorder":
            values["tip_link"] = self.tip
        experiments = {name: experiment for experiment, (name, _) in EXPERIMENT_NODES.items()}
        if node == "excitation":
            values |= {"acceleration_limits": [self.acceleration_limit]} if self.acceleration_limit else {}
            values |= {"floor_height": self.floor_height} if self.floor_height else {}
            values |= {"obstacles_file": self.inside(self.obstacles)} if self.obstacles else {}
        elif node == "recorder":
            values["output_folder"] = self.output / "recordings"
        elif node == "gravity_compensation":
            values |= {"model_file": self.model_file(), "autostart": True, **ROUTE_PARAMETERS[self.route]}
            # effort that is not torque shows the compensation nothing
            values["effort_convention"] = "torque" if self.effort_convention == "torque" else ""
        elif node in experiments:
            values["output"] = self.folder(experiments[node])
            values |= {"effort_convention": self.effort_convention, **self._gains()}
            if node == "load_identification":
                values["model_file"] = self.model_file()
        return values

    def effort_options(self) -> list[str]:
        """Return the options of `dynid` for the meaning of effort."""
        gains = self._gains().get("motor_gains", [])
        text = ["--motor-gains", ",".join(f"{gain:g}" for gain in gains)] if gains else []
        return ["--effort-convention", self.effort_convention, *text]

    def robot_options(self) -> list[str]:
        """Return the options of `dynid` for the robot."""
        return ["--urdf", str(self.urdf), *(["--tip", self.tip] if self.tip else [])]

    def inside(self, name: str) -> Path:
        """Return the path of a file in the chosen folder.

        Raises:
            DynidError: the file is outside of the folder, or does not exist.
        """
        path = (self.output / name).resolve()
        if not path.is_relative_to(self.output.resolve()):
            raise DynidError(f"{name}: the page reads files in {self.output} only; copy the file into that folder")
        if not path.is_file():
            raise DynidError(f"{name}: there is no such file in {self.output}")
        return path

    def _gains(self) -> dict[str, list[float]]:
        words = self.motor_gains.replace(",", " ").split()
        try:
            gains = [float(word) for word in words]
        except ValueError as error:
            text = f"motor gains '{self.motor_gains}': expected numbers with commas between, one per joint"
            raise DynidError(text) from error
        return {"motor_gains": gains} if gains else {}
