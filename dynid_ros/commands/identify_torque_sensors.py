"""`dynid identify torque-sensors`: recordings without and with a mass, or known gravity, to gains and offsets."""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_json, add_reading, add_robot, add_settings
from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.jobs.identification import identify_torque_sensors, read_gravity
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.settings import settings_of, values_of

SETTINGS = settings_of(TorqueSensorCalibration)


def add(sensors: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_robot(sensors)
    sensors.add_argument(
        "--recording",
        action="append",
        type=Path,
        default=[],
        metavar="R",
        help="dwells in many poses without the mass (bag folder, .csv, .npz), as `dynid excite` plans them; repeatable",
    )
    sensors.add_argument(
        "--recording-with-mass", action="append", type=Path, default=[], metavar="R", help="with the mass; repeatable"
    )
    sensors.add_argument(
        "--model", type=Path, help="identified.yaml whose gravity parameters are known; then no mass is needed"
    )
    add_settings(sensors, SETTINGS)
    add_reading(sensors)
    sensors.add_argument("--output", type=Path, required=True, help="folder for identified.yaml and report.html")
    add_json(sensors)
    sensors.set_defaults(command=_identify)


def _identify(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
    gravity, arm = read_gravity(options.model, robot) if options.model is not None else (None, None)
    calibration = TorqueSensorCalibration(robot, gravity=gravity, **values_of(SETTINGS, vars(options)))
    plain = read_recordings(options, robot, options.recording)
    loaded = read_recordings(options, robot, options.recording_with_mass)
    return Answer.of(identify_torque_sensors(calibration, plain, options.output, loaded, arm))
