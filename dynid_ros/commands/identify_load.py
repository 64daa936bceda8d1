"""`dynid identify load`: recordings of an arm that carries something, to what it carries."""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_json, add_recording, add_robot
from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LoadIdentification
from dynid_ros.identification.load.wrench_source import WrenchSource
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.jobs.load import ACTS_ON, identify_load, read_arm, read_tare


def add(load: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_robot(load)
    add_recording(load)
    arm = load.add_mutually_exclusive_group()
    arm.add_argument("--model", type=Path, help="identified.yaml of a link identification of the arm alone")
    arm.add_argument(
        "--unloaded", action="append", type=Path, default=[], metavar="R0", help="the arm alone, in motion; repeatable"
    )
    load.add_argument("--static", action="store_true", help="from dwells: mass and centre, no inertia")
    load.add_argument(
        "--tare", type=Path, metavar="FILE", help="identified.yaml of a load that is part of this one, to subtract"
    )
    _add_sensor(load)
    load.add_argument(
        "--torque-gain-error", type=float, default=0.01, metavar="S", help="standard deviation, relative (%(default)s)"
    )
    load.add_argument("--output", type=Path, required=True, help="folder for identified.yaml, report.html and drivers/")
    add_json(load)
    load.set_defaults(command=_identify_load)


def _add_sensor(load: argparse.ArgumentParser) -> None:
    sensor = load.add_argument_group("force/torque sensor", "at the wrist, whose link is --tip; needs no --model")
    sensor.add_argument(
        "--source", choices=("torque", "wrench"), default="torque", help="what weighs the load; default: %(default)s"
    )
    sensor.add_argument("--wrench-topic", metavar="T", help="of several in a bag")
    sensor.add_argument(
        "--wrench-frame", choices=("sensor", "base"), help="whose axes wrenches are in; default: by their frame_id"
    )
    sensor.add_argument(
        "--wrench-acts-on",
        choices=tuple(ACTS_ON),
        default="sensor",
        help="who feels the wrench: %(default)s: a load at rest reads its weight downward; load: upward",
    )
    sensor.add_argument(
        "--wrench-gain-error", type=float, default=0.005, metavar="S", help="standard deviation, relative (%(default)s)"
    )


def _identify_load(options: argparse.Namespace) -> Answer:
    by_torque = options.source == "torque"
    _check_inputs(options, by_torque)
    robot = read_robot(options)
    known, document = read_arm(options.model, robot) if options.model is not None else (None, None)
    identification = LoadIdentification(
        robot,
        known,
        sensor=None if by_torque else _sensor(options),
        motion="static" if options.static else "dynamic",
        tare=None if options.tare is None else read_tare(options.tare, robot),
        torque_gain_error=options.torque_gain_error,
    )
    recordings = read_recordings(options, robot, options.recording)
    unloaded = read_recordings(options, robot, options.unloaded)
    return Answer.of(identify_load(identification, recordings, options.output, unloaded, document))


def _check_inputs(options: argparse.Namespace, by_torque: bool) -> None:
    if by_torque and options.model is None and not options.unloaded:
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


def _sensor(options: argparse.Namespace) -> WrenchSource:
    return WrenchSource(
        topic=options.wrench_topic,
        frame=options.wrench_frame,
        convention=ACTS_ON[options.wrench_acts_on],
        gain_error=options.wrench_gain_error,
    )
