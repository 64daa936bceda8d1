"""`dynid identify load`: recordings of an arm that carries something, to what it carries."""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_json, add_recording, add_robot, add_settings
from dynid_ros.errors import IdentificationError
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.jobs.load import LoadSettings, identify_load, read_arm, read_tare
from dynid_ros.recording.effort import COMPENSATED
from dynid_ros.settings import settings_of, values_of

SETTINGS = settings_of(LoadSettings)


def add(load: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_robot(load)
    add_recording(load)
    arm = load.add_mutually_exclusive_group()
    arm.add_argument("--model", type=Path, help="identified.yaml of a link identification of the arm alone")
    arm.add_argument(
        "--unloaded", action="append", type=Path, default=[], metavar="R0", help="the arm alone, in motion; repeatable"
    )
    load.add_argument(
        "--tare", type=Path, metavar="FILE", help="identified.yaml of a load that is part of this one, to subtract"
    )
    add_settings(load, SETTINGS)
    load.add_argument("--output", type=Path, required=True, help="folder for identified.yaml, report.html and drivers/")
    add_json(load)
    load.set_defaults(command=_identify_load)


def _identify_load(options: argparse.Namespace) -> Answer:
    _check_inputs(options, options.source == "torque")
    settings = LoadSettings(**values_of(SETTINGS, vars(options)))
    compensated = options.effort_convention == COMPENSATED and options.source == "torque"
    declared, options.payload = (options.payload, ()) if compensated else ((), options.payload)
    robot = read_robot(options)
    known, document = read_arm(options.model, robot) if options.model is not None else (None, None)
    identification = settings.identification(
        robot, known, None if options.tare is None else read_tare(options.tare, robot)
    )
    if compensated:
        identification = identification.of_compensated(declared)
    recordings = read_recordings(options, robot, options.recording, residual=compensated)
    unloaded = read_recordings(options, robot, options.unloaded)
    return Answer.of(identify_load(identification, recordings, options.output, unloaded, document))


def _check_inputs(options: argparse.Namespace, by_torque: bool) -> None:
    if by_torque and options.effort_convention == COMPENSATED:
        if options.model is not None or options.unloaded:
            raise IdentificationError(
                "--effort-convention gravity_compensated: the driver has taken the arm off its torques; leave --model "
                "and --unloaded out"
            )
    elif by_torque and options.model is None and not options.unloaded:
        raise IdentificationError(
            "the torques of the arm alone are not known: give --model, identified.yaml of its links, or --unloaded, "
            "recordings of the arm without the load"
        )
    if not by_torque and options.unloaded:
        raise IdentificationError(
            "--unloaded is for joint torques; a tool on the sensor, weighed by itself, is subtracted with --tare"
        )
    if by_torque and (options.wrench_topic or options.wrench_frame):
        raise IdentificationError("--wrench-topic and --wrench-frame are for --source wrench")
