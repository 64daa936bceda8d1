"""`dynid identify torque-sensors`: recordings without and with a mass, or known gravity, to gains and offsets.

Of motor currents without `--motor-gains` the gains are the motors' torque constants at the joints.
"""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_json, add_reading, add_robot, add_settings
from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.identified.gravity import KnownGravity
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
    known = sensors.add_mutually_exclusive_group()
    known.add_argument(
        "--model", type=Path, help="identified.yaml whose gravity parameters are known; then no mass is needed"
    )
    known.add_argument(
        "--known-masses", action="store_true", help="those of the URDF are the arm's; then no mass is needed either"
    )
    add_settings(sensors, SETTINGS)
    add_reading(sensors)
    sensors.add_argument("--output", type=Path, required=True, help="folder for identified.yaml and report.html")
    add_json(sensors)
    sensors.set_defaults(command=_identify)


def _identify(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
    gravity, arm = read_gravity(options.model, robot) if options.model is not None else (None, None)
    if options.known_masses:
        gravity = KnownGravity.of_urdf(robot)
    currents = options.effort_convention == "motor_current" and options.motor_gains is None
    settings = values_of(SETTINGS, vars(options))
    calibration = TorqueSensorCalibration(robot, gravity=gravity, currents=currents, **settings)
    plain, loaded = (
        read_recordings(options, robot, paths, readings=currents)
        for paths in (options.recording, options.recording_with_mass)
    )
    return Answer.of(identify_torque_sensors(calibration, plain, options.output, loaded, arm))
