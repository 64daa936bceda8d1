"""Export of an `identified.yaml` and a URDF to files for another program, with the error that the format causes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from dynid_ros.errors import ModelError
from dynid_ros.export.exported_arm import Export, ExportedArm, Motion
from dynid_ros.export.exported_urdf import with_servo_rotors
from dynid_ros.files import writable_file
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import link_model
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals

TARGETS = {
    "c": "c_source",
    "controller": "controller",
    "urdf": "exported_urdf",
    "mjcf": "mjcf_file",
    "sdf": "sdf",
    "isaac": "isaac",
}
"""Module of this folder for each target; its `write` writes the files. Imported on demand: MuJoCo may be missing."""

SUFFIXES = {"urdf": ".urdf", "mjcf": ".xml", "sdf": ".sdf", "isaac": ".py"}
"""Suffix for a file name without suffix. C has two files, and adds the suffixes itself."""


def export(
    model: str | Path,
    robot: RobotModel,
    target: str,
    output: str | Path,
    recording: Recording | None = None,
    *,
    servos: str | Path | None = None,
) -> Export:
    """Write the identified model of an arm for another program.

    Args:
        model: path of an `identified.yaml`.
        robot: arm from its URDF.
        target: key of `TARGETS`.
        output: path of the file, common name of several files, or folder of a package; a name without a suffix gets
            that of the format.
        recording: motion on which the error of the export is evaluated; None: sinusoids within the limits.
        servos: path of an `identified.yaml` with servos, for MJCF; None: the servos in `model`.

    Raises:
        IdentifiedFileError: the file is malformed, belongs to another robot, or lacks content that the target needs.
        ModelError: no such file can describe the arm, or the target needs a module that is not installed.
    """
    if servos is not None and target != "mjcf":
        raise ModelError(f"--servos is for --to mjcf; {target} has no servos")
    try:
        write = import_module(f"dynid_ros.export.{TARGETS[target]}").write
    except ModuleNotFoundError as error:
        raise ModelError(
            f"--to {target} needs {error.name}, which is not installed: pip install {error.name}"
        ) from error
    place = Path(output)
    if target in SUFFIXES and place.name and not place.suffix and not place.exists():
        place = place.with_name(place.name + SUFFIXES[target])
    place = place if target == "controller" else writable_file(place)
    motion = _motion(model, robot, recording)
    return write(with_servo_rotors(ExportedArm.read(model, robot, servos), motion.q), place, motion)


def _motion(model: str | Path, robot: RobotModel, recording: Recording | None) -> Motion:
    """Return the filtered motion of a recording, or sinusoids without a recording."""
    if recording is None:
        return Motion.sinusoids(robot)
    selected = recording.select(robot.joint_names)
    document = load_identified(model)
    signals = link_model(document, robot).signals if "links" in document else LinkSignals.choose([selected])
    return Motion(*signals.motion_at_samples(selected), selected.source)
