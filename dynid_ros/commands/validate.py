"""`dynid validate`: compare the torque, or the torsion, that an `identified.yaml` predicts with a recording."""

import argparse
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np

from dynid_ros.commands.options import Answer, add_link_states, add_output, add_recordings, add_robot, add_servos
from dynid_ros.errors import IdentifiedFileError, ModelError, RecordingError
from dynid_ros.identified.flexible_joints import predicts_torsion
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.inputs import given_robot, read_recordings
from dynid_ros.jobs.prediction import predict, predict_torsion, write_table
from dynid_ros.jobs.screen import Screen


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.description = (
        "Compare the recorded torque with the prediction of an identified.yaml, sample by sample. A file written by "
        "--torsion predicts motor minus link position instead and needs no --urdf."
    )
    add_robot(parser, required=False)
    add_link_states(add_recordings(parser))
    method = parser.add_argument_group("method")
    method.add_argument("--model", type=Path, required=True, metavar="FILE", help="identified.yaml to validate")
    method.add_argument(
        "--simulate",
        action="store_true",
        help="also replay the recording in MuJoCo, with the URDF and with the output of dynid export --to mjcf; servos "
        "with known gains follow recorded commands in closed loop",
    )
    add_servos(method)
    add_output(parser, "CSV file with measured and predicted torque; of servos without a torque, with positions")
    parser.set_defaults(command=_validate)


def _validate(options: argparse.Namespace) -> Answer:
    if len(options.recording) > 1:
        raise RecordingError(f"validate takes one recording, not {len(options.recording)}; run it once per recording")
    document = load_identified(options.model)
    robot = given_robot(options)
    if predicts_torsion(document):
        (recording,) = read_recordings(options, robot, options.recording, document["robot"].get("joints"))
        return Answer.of(predict_torsion(document, recording, options.output))
    if robot is None:
        raise IdentifiedFileError(f"{options.model}: --urdf is missing: a torque prediction needs the model of the arm")
    (recording,) = read_recordings(options, robot, options.recording)
    has_torque = bool(np.isfinite(recording.torque).any())
    if not options.simulate:
        return Answer.of(predict(options.model, robot, recording, options.output))
    try:
        # MuJoCo is an optional dependency, so its module is imported only on request.
        simulated = import_module("dynid_ros.export.simulated")
    except ModuleNotFoundError as error:
        raise ModelError(f"--simulate needs {error.name}, which is not installed: pip install {error.name}") from error
    simulation = simulated.simulate_recording(options.model, robot, recording, options.servos)
    lines = simulation.summary().splitlines()
    if simulation.simulated is not None and not has_torque:  # of position servos; the table then holds positions
        table = write_table(options.output, recording, recording.position, simulation.simulated)
        return Answer(
            Screen(lines[:1], lines[1:], (), [table]), {"simulation": simulation.document()}, {"predicted": table}
        )
    job = predict(options.model, robot, recording, options.output)
    prediction = job.screen()
    screen = replace(prediction, table=[*prediction.table, *lines])
    return Answer(screen, {**job.document(), "simulation": simulation.document()}, job.files)
