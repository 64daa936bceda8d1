"""`dynid identify flexible`: recordings of motors and links, to the springs between them."""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_json, add_links, add_recording, add_robot, add_settings
from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible import FlexibleJointIdentification
from dynid_ros.jobs.flexible_joints import CameraFiles, FlexibleSettings, marker_links, with_camera_files
from dynid_ros.jobs.inputs import given_robot, read_recordings
from dynid_ros.recording import Recording
from dynid_ros.settings import settings_of, values_of

RUN, SETTINGS = settings_of(FlexibleSettings), settings_of(FlexibleJointIdentification)


def add(flexible: argparse.ArgumentParser) -> None:
    """Add its options."""
    flexible.description = (
        "Recordings hold motors' positions and torques, seen from the links, and where the links are: "
        "link_position of encoders behind the gears, a topic of theirs, or what cameras saw. Only --torsion does "
        "without --urdf."
    )
    add_robot(flexible, required=False)
    add_recording(flexible)
    flexible.add_argument(
        "--validate",
        action="append",
        type=Path,
        default=[],
        metavar="R",
        help="to predict, not to fit; needs links for --torsion only",
    )
    add_links(flexible)
    add_settings(flexible, (*RUN, *SETTINGS))
    _add_cameras(flexible)
    flexible.add_argument("--output", type=Path, required=True, help="folder for identified.yaml and report.html")
    add_json(flexible)
    flexible.set_defaults(command=_identify)


def _add_cameras(flexible: argparse.ArgumentParser) -> None:
    cameras = flexible.add_argument_group("motion capture", "markers or rigid bodies on the links; docs/flexible.md")
    cameras.add_argument("--mocap", action="store_true", help="the links are in the recordings' poses")
    cameras.add_argument(
        "--mocap-file",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="export of the camera system (Motive, Vicon, Qualisys, TRC, plain CSV), one for each --recording",
    )
    cameras.add_argument(
        "--markers",
        action="append",
        default=[],
        metavar="TOPIC=LINK",
        help="which link carries a body or marker; without =LINK it is found; repeatable. Default: all, found",
    )
    cameras.add_argument("--mocap-unit", choices=("m", "cm", "mm"), help="of lengths, where the file names none")
    cameras.add_argument("--mocap-rate", type=float, metavar="HZ", help="frames per second, in place of the file's")


def _identify(options: argparse.Namespace) -> Answer:
    run, settings = FlexibleSettings(**values_of(RUN, vars(options))), values_of(SETTINGS, vars(options))
    robot = given_robot(options)
    if robot is None and not run.torsion:
        raise IdentificationError("--urdf is missing: links, springs and motors need the arm; only --torsion does not")
    recordings = read_recordings(options, robot, options.recording)
    unseen = read_recordings(options, robot, options.validate, recordings[0].joint_names)
    spring = settings.pop("spring")
    job = run.identify(
        None if robot is None else FlexibleJointIdentification(robot, **settings),
        _with_cameras(options, recordings),
        options.output,
        unseen,
        spring=spring,
        mocap=options.mocap or bool(options.mocap_file),
        markers=marker_links(options.markers),
    )
    return Answer.of(job)


def _with_cameras(options: argparse.Namespace, recordings: list[Recording]) -> list[Recording]:
    if options.markers and not (options.mocap or options.mocap_file):
        raise IdentificationError(
            "--markers says where markers are, but no camera is used: give --mocap or --mocap-file"
        )
    if not options.mocap_file:
        return recordings
    files = CameraFiles(options.mocap_file, options.mocap_unit, options.mocap_rate)
    return with_camera_files(recordings, files)
