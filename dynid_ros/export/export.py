"""Export from `identified.yaml` and a URDF to files of another program, with the loss that the format causes."""

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
"""Modules of this room, whose `write` writes the files; loaded when chosen, as MuJoCo need not be installed."""

SUFFIXES = {"urdf": ".urdf", "mjcf": ".xml", "sdf": ".sdf", "isaac": ".py"}
"""Suffix for a file name without one, so that each format has its own file; C adds two suffixes."""


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
        model: `identified.yaml`.
        robot: the arm, of its URDF.
        target: key of `TARGETS`.
        output: the file, the common name of several files, or the folder of a package; a name without a suffix gets
            that of the format.
        recording: motion on which the loss of the export is judged; None: sinusoids within the limits.
        servos: `identified.yaml` of the servos, for MJCF; None: those of the model's file.

    Raises:
        IdentifiedFileError: the file is malformed, belongs to another robot, or holds too little for the target.
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
    if recording is None:
        return Motion.sinusoids(robot)
    chosen = recording.select(robot.joint_names)
    document = load_identified(model)
    signals = link_model(document, robot).signals if "links" in document else LinkSignals.choose([chosen])
    return Motion(*signals.motion_at_samples(chosen), chosen.source)
