"""Holds the links that the demo identified against what MuJoCo knows, and writes the report of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.demo.page import Act, Found, before_after_plot
from dynid_ros.demo.stage import Stage, say_links
from dynid_ros.errors import DynidError
from dynid_ros.identification import LinkIdentification, LinkResult
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.link_parameters import base_rows
from dynid_ros.report.links import write_link_report
from dynid_ros.report.page import Tile
from dynid_ros.simulation import SimulatedArm, tabled_arm

LARGEST_ERROR = 0.02
"""RMS over the RMS of each joint's true torque."""
LEAST_COVERED = 0.8
"""Of some 60 intervals of 95 %. They err together: in 20 repetitions of the demo's motion 97 % held the truth on the
average, 87 % in the worst; intervals half as wide as they should be would hold 67 %."""


FRICTION_UNITS = {"coulomb": "N m", "stribeck": "N m", "viscous": "N m s/rad", "rotor": "kg m²", "offset": "N m"}
"""By how a term's name begins."""


@dataclass(frozen=True)
class LinkVerdict:
    """What the act has shown, on a motion that was not fitted.

    Attributes:
        joint_names: n names.
        error: (n,) torque of links and rotors against MuJoCo's, RMS over the RMS of the latter.
        urdf_error: (n,) the same of the URDF's links, with rotors fitted to the data.
        rows: base parameters.
    """

    joint_names: tuple[str, ...]
    error: NDArray
    urdf_error: NDArray
    rows: tuple[Found, ...]

    @property
    def covered(self) -> NDArray:
        """(k,) whether the 95 % interval of each base parameter holds its true value."""
        return np.array([row.covered for row in self.rows])

    @property
    def passed(self) -> bool:
        """Whether torque and intervals are as good as they must be."""
        return float(self.error.max()) <= LARGEST_ERROR and float(self.covered.mean()) >= LEAST_COVERED

    def sentences(self) -> list[str]:
        """The verdict."""
        worst, urdf = self.error.max(), self.urdf_error.max()
        return [
            "PASSED: the links are found." if self.passed else "FAILED: the links are not found well enough.",
            f"Torque of links and rotors on the unseen motion: the worst joint is off by {worst:.2%} RMS (allowed "
            f"{LARGEST_ERROR:.0%}), by the URDF, which is wrong on purpose, {urdf:.0%}",
            f"True values within their 95 % intervals: {self.covered.sum()} of {len(self.covered)} base parameters "
            f"(at least {LEAST_COVERED:.0%})",
        ]

    def tiles(self) -> list[Tile]:
        """The verdict in numbers."""
        return [
            Tile("Torque, worst joint", f"{self.error.max():.2%}", "off, on a motion that was not used to identify"),
            Tile("The same by the URDF", f"{self.urdf_error.max():.0%}", "off; it is wrong on purpose"),
            Tile("Intervals that hold the truth", f"{self.covered.sum()} of {len(self.covered)}", "of 95 %"),
        ]

    @property
    def pictures(self) -> dict[str, str]:
        """Errors of the URDF and of what was identified."""
        label = "error of the torque (% RMS)"
        picture = before_after_plot(self.joint_names, 100 * self.urdf_error, 100 * self.error, label)
        return {"Torque on the unseen motion. Orange: by the URDF as given; blue: by the identified links": picture}


def write_link_demonstration(
    robot: RobotModel, truth: dict[str, Any], folder: Path, fitted: Recording, unseen: Recording
) -> LinkVerdict:
    """Compare `identified.yaml` in `folder` with the truth of MuJoCo; write `report.html` there anew, with the truth.

    Args:
        robot: with the links of the URDF that was identified from.
        truth: of the simulated arm, see `truth_table`.
        folder: that the identification wrote into.
        fitted: the recording that it was identified from.
        unseen: of another motion.

    Raises:
        DynidError: the file is not what the fitted recording gives.
    """
    arm = tabled_arm(truth)
    result = _repeated(load_identified(folder / "identified.yaml"), robot, fitted)
    write_link_report(folder / "report.html", result, [fitted], [unseen], arm.truth.parameters)
    motion = _measured_motion(result.model, unseen)
    torque: NDArray = arm.truth.drive_torque(*motion)

    def error(model: LinkModel) -> NDArray:
        return np.sqrt(np.mean((_drive_torque(model, *motion) - torque) ** 2, axis=0) / np.mean(torque**2, axis=0))

    return LinkVerdict(
        robot.joint_names,
        error(result.model),
        error(result.urdf_model),
        _rows(result, true_base_parameters(result, arm)),
    )


def _rows(result: LinkResult, true: NDArray) -> tuple[Found, ...]:
    estimate = result.base_parameters
    units = {row.name: row.unit for row in base_rows(result)}
    low, high = estimate.confidence_intervals(0.95).T
    return tuple(
        Found(
            name if name == expression else f"{name} + …",
            units.get(name) or FRICTION_UNITS.get(name.split()[0].split("_")[0], ""),
            *numbers,
        )
        for name, expression, *numbers in zip(
            estimate.names, estimate.expressions, true.tolist(), estimate.values, (high - low) / 2, strict=True
        )
    )


def true_base_parameters(result: LinkResult, arm: SimulatedArm) -> NDArray:
    """(k,) true values of the base parameters of `result`; friction terms that the arm does not have are zero."""
    drives = {
        "coulomb": arm.drives.coulomb,
        "viscous": arm.drives.viscous,
        "rotor_inertia": arm.drives.rotor_inertia,
        "offset": arm.sensors.torque_offset,
    }
    known = {
        f"{term}{side} {joint}": float(np.asarray(values)[i])
        for term, values in drives.items()
        for side in ("", "_positive", "_negative")
        for i, joint in enumerate(arm.robot.joint_names)
    }
    links = arm.truth.parameters
    friction = [known.get(name, 0.0) for name in result.base.names[links.size :]]
    return result.base.project(np.concatenate([links, friction]))


def _repeated(document: dict, robot: RobotModel, fitted: Recording) -> LinkResult:
    """The result that the document was written from: the identification gives the same again."""
    settings = document["source"]["settings"]
    identification = LinkIdentification(
        robot, estimator=settings["estimator"], torque_gain_error=settings["torque_gain_error"]
    )
    result = identification.fit(fitted)
    again, written = (
        [(row["expression"], row["value"]) for row in content["base_parameters"]]
        for content in (result.document(), document)
    )
    if again != written:
        raise DynidError(
            f"identified.yaml is not what {fitted.source} gives; the demo changes estimator and torque_gain_error of "
            "link_identification only, leave its other parameters as they are"
        )
    return result


def _measured_motion(model: LinkModel, recording: Recording) -> tuple[NDArray, NDArray, NDArray]:
    """Position, velocity and acceleration, (M, n) each, as the identification takes them from the positions."""
    segments = model.signals.segments(recording)
    position, velocity, acceleration = (
        np.concatenate(parts) for parts in zip(*(segment.motion for segment in segments), strict=True)
    )
    return position, velocity, acceleration


def _drive_torque(model: LinkModel, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray:
    """(M, n) torque of links and rotors, without friction and offset."""
    robot = model.robot
    coefficients = dict(zip(model.friction.names(robot), model.coefficients, strict=True))
    rotors = [coefficients.get(f"rotor_inertia {joint}", 0.0) for joint in robot.joint_names]
    return robot.inverse_dynamics(q, qd, qdd, model.parameters) + np.array(rotors) * qdd


# Third act of the demo: all joints move at once, as shows the links best.


SHAPE = {"motion": "fourier", "target": "links", "base_frequency": 0.125, "harmonics": 10}
MOTIONS = (
    {**SHAPE, "seed": 1, "periods": 2, "design_time": 8.0},
    # what is tried on it need not show the links best
    {**SHAPE, "seed": 2, "periods": 1, "design_time": 0.0},
)
STORY = (
    "Gravity is not all: a moving arm has inertia and friction. A motion of all joints at once is designed to "
    "show them best within the arm's limits, clear of the floor and of the arm itself; it is made and recorded. "
    "Masses, mass moments, inertias and friction of all links are identified from it, each with an interval "
    "that says how well it is known.",
    "Then the arm makes another motion, and the identified model is to say which torques that one needed.",
)


def links_act(stage: Stage) -> None:
    """Play it; what one motion says of links and friction is tried on another. It is good if they are found."""
    arm, folder = stage.arm, stage.output / "links"
    stage.call.trigger("/simulator/reset")
    stage.announce("Excitation: a motion of all joints, designed to show the links, is made; then another one.")
    # A joint at standstill is held by stiction, which no model knows: the approach, with its dwells, is left out.
    fitted, unseen = (stage.excitation.record("running") for _ in MOTIONS)
    stage.announce("Links and friction are identified from the first bag, and validated on the second, meanwhile.")
    stage.call.set_parameters("/link_identification", {"recording": fitted, "validation_recording": unseen})
    stage.begin("links", "/link_identification/identify")
    truth = stage.truth()

    def judge() -> Act:
        say_links(stage)
        verdict = write_link_demonstration(arm.robot, truth, folder, arm.read(fitted), arm.read(unseen))
        title = "Links: masses, inertias and friction"
        return Act.of(title, STORY, verdict, [("the identification's report", "links/report.html")])

    stage.later("links", judge)
