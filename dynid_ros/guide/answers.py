"""Answers of the user, and the parameters of nodes and the options of commands that follow from them."""

from dataclasses import dataclass
from pathlib import Path

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.parameters import COMPENSATION_ROUTES, IDENTIFICATIONS
from dynid_ros.recording.effort import EFFORT_KINDS, IMPEDANCE

COMPENSATION_NODE = "gravity_compensation"
EXPERIMENTS = {name: option for name, option in IDENTIFICATIONS.items() if name != "live_load"}
EXPERIMENTS_BY_NODE = {option.node: name for name, option in EXPERIMENTS.items()}
OFFERED_ROUTES = ("effort", "feedforward", "trajectory")
"""Routes of the compensation that need no identified servos."""
EFFORT_CONVENTIONS = tuple(kind for kind in EFFORT_KINDS if kind != IMPEDANCE)
"""Meanings of effort that the page offers; impedance needs further parameters, which a parameter file has."""


@dataclass
class Answers:
    """Answers of the user so far.

    Attributes:
        output: folder of all results; the page writes to no other folder.
        namespace: namespace of the nodes with a leading `/`; empty: none.
        tip: last link of the chain; empty: the flange.
        acceleration_limit: rad/s² (m/s²), for all joints; 0: the limit of the URDF or the parameter file.
        floor_height: lowest height of links above the base, m.
        obstacles: file of boxes in `output`; empty: none.
        effort_convention: meaning of effort in joint states.
        motor_gains: gains as text, one per joint; empty: none.
        route: one of `OFFERED_ROUTES`.
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
    route: str = OFFERED_ROUTES[0]
    files: tuple[Path, ...] = ()

    @property
    def motion_file(self) -> Path:
        """File of the last designed motion."""
        return self.output / "motion.yaml"

    def model_file(self) -> Path:
        """Return the newest identified.yaml of the arm.

        Raises:
            DynidError: no model has been identified yet.
        """
        files = [self.output / experiment / "identified.yaml" for experiment in ("gravity", "links")]
        if not any(map(Path.is_file, files)):
            raise DynidError("there is no model yet: identify gravity or links first, in step 5")
        return max(filter(Path.is_file, files), key=lambda file: file.stat().st_mtime)

    def parameters(self, node: str) -> dict[str, object]:
        """Return the parameters of a node at its start."""
        if node == "recorder":
            return {"output_folder": self.output / "recordings"}
        values: dict[str, object] = {"robot_description": self.urdf}
        values |= {"tip_link": self.tip} if self.tip else {}
        if node == "excitation":
            values |= {"acceleration_limits": [self.acceleration_limit]} if self.acceleration_limit else {}
            values |= {"floor_height": self.floor_height} if self.floor_height else {}
            values |= {"obstacles_file": self.inside(self.obstacles)} if self.obstacles else {}
        elif node == COMPENSATION_NODE:
            values |= {"model_file": self.model_file(), "autostart": True, **COMPENSATION_ROUTES[self.route].fixed}
            # The node compares effort with the torque of the model, which makes sense for torque alone.
            values["effort_convention"] = "torque" if self.effort_convention == "torque" else ""
        elif node in EXPERIMENTS_BY_NODE:
            values["output"] = self.output / EXPERIMENTS_BY_NODE[node]
            values["effort_convention"] = self.effort_convention
            values |= {"motor_gains": self._gains()} if self.motor_gains else {}
            values |= {"model_file": self.model_file()} if node == EXPERIMENTS["load"].node else {}
        return values

    def identify_options(self, *recordings: str) -> list[str]:
        """Return the options of `dynid` for the robot, recordings, and the meaning of effort."""
        options = ["--urdf", str(self.urdf), *(["--tip", self.tip] if self.tip else [])]
        for option, recording in zip(("--recording", "--validate"), recordings, strict=False):
            options += [option, recording]
        if recordings:
            options += ["--effort-convention", self.effort_convention]
            options += ["--motor-gains", ",".join(f"{gain:g}" for gain in self._gains())] if self.motor_gains else []
        return options

    def inside(self, name: str) -> Path:
        """Return the path of a file in the chosen folder.

        Raises:
            DynidError: the folder lacks the file.
        """
        path = (self.output / name).resolve()
        if not path.is_relative_to(self.output.resolve()) or not path.is_file():
            raise DynidError(f"{name}: there is no such file in {self.output}; copy the file into that folder")
        return path

    def _gains(self) -> list[float]:
        try:
            return [float(word) for word in self.motor_gains.replace(",", " ").split()]
        except ValueError as error:
            text = f"motor gains '{self.motor_gains}': expected numbers with commas between, one per joint"
            raise DynidError(text) from error
