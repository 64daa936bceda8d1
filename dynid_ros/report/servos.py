"""Report of position servos: the section `servos` of `identified.yaml`, and the following error of a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.identification.servo.servo_result import SERVO_UNITS, ServoResult
from dynid_ros.identified.identified_file import DOF
from dynid_ros.identified.servos import IN_TORQUE_KEY
from dynid_ros.identified.validation import Validation
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.drawing import prediction_panels, spread_indices
from dynid_ros.report.formats import PRISMATIC, counted, percent, plus_minus, significant
from dynid_ros.report.page import Condition, Figures, Legend, Section, Tile
from dynid_ros.report.result_page import (
    ResultPart,
    entries_of,
    half_width_of,
    joint_table,
    number_of,
    result_page,
    units_of,
)

SHOWN_DURATION_S = 15.0
MAX_SHOWN_SAMPLES = 1500
"""Duration, s, and number of samples of the plots of following error."""
HEADINGS = {label: label.capitalize() for label in SERVO_UNITS} | {"viscous": "Viscous and damping"}


def servo_part(document: Mapping[str, Any], robot: RobotModel | None = None) -> ResultPart:
    """Return the part of a page on servos."""
    entries = entries_of(document, "servos")
    units = units_of(document, robot)
    # Joints with a known gain, whose parameters are also known in units of torque.
    known = [joint for joint, entry in entries.items() if entry.get(IN_TORQUE_KEY)]
    over_gain, in_torque = ({label: (HEADINGS[label], pair[k]) for label, pair in SERVO_UNITS.items()} for k in (0, 1))
    sections: list[Section | None] = [
        Section(
            "Parameters over the gain",
            [
                "All parameters except the delay are divided by the gain of the joint, torque over position error. "
                "Inertia is that of rotor and links, its mean over the recorded poses; gravity is the largest gravity "
                "torque in these poses. Intervals are 95 % intervals; a dash means that the data do not determine the "
                "value.",
                joint_table(document, "servos", over_gain, units),
            ],
        )
    ]
    if known:
        torque_entries = {joint: {**entries[joint][IN_TORQUE_KEY], DOF: entries[joint].get(DOF)} for joint in known}
        derived = {**document, "servos": torque_entries}
        text = "The gain of each joint, given or from the reference mass, and the parameters in N m or N."
        sections.append(Section("Parameters in torque", [text, joint_table(derived, "servos", in_torque, units)]))
    all_known = "all" if len(known) == len(entries) else len(known) or "none"
    sentence = (
        f"Delay, inertia, damping and friction of {counted(len(entries), 'servo')} were identified from commands and "
        f"positions; {all_known} of them in N m or N."
    )
    return ResultPart("Servos", [sentence], _tiles(document, entries, known, units), sections)


def write_result_report(
    path: str | Path,
    result: ServoResult,
    recordings: Mapping[str, Sequence[Recording]],
    validations: Sequence[Validation],
) -> Path:
    """Write the report of a result; it shows the following error in the first validation recording, or a fitted one."""
    shown = (*recordings.get("validate", ()), *recordings["recordings"])[0]
    document = result.content(validations)
    part = servo_part(document, result.robot)
    condition = Condition(result.condition_number)
    names = result.model.robot.joint_names
    command, measured, simulated = result.simulate(shown)[0]
    time = np.arange(len(command)) * shown.duration / (shown.n_samples - 1)
    following = Section(
        "Following error",
        [
            f"{shown.source}: command minus position, measured, and simulated from the commands alone. The lower plot "
            "shows the residual.",
            Legend({"measured": "measured", "identified": "simulated"}),
            Figures(
                prediction_panels(
                    names,
                    [f"m{result.position_unit(name)}" for name in names],
                    time,
                    1e3 * (command - measured),
                    1e3 * (command - simulated),
                    rows=spread_indices(int(np.count_nonzero(time < SHOWN_DURATION_S)), MAX_SHOWN_SAMPLES),
                    quantity="following error",
                )
            ),
        ],
    )
    sections = [*part.sections, following, condition.section()]
    return result_page(document, ResultPart(part.title, part.sentences, [*part.tiles, condition.tile], sections)).write(
        path
    )


def _tiles(
    document: Mapping[str, Any], entries: Mapping[str, dict], known: Sequence[str], units: Mapping[str, Any]
) -> list[Tile]:
    delays = {joint: np.nan_to_num(number_of(entry, "delay")) for joint, entry in entries.items()}
    slowest = max(delays, key=lambda joint: delays[joint])
    half = half_width_of(document, entries[slowest], "delay")
    tiles = [Tile("Longest delay", f"{plus_minus(1e3 * delays[slowest], 1e3 * half)} ms", slowest)]
    if known:
        torque = {joint: {**entries[joint][IN_TORQUE_KEY], DOF: entries[joint].get(DOF)} for joint in known}
        worst = max(half_width_of(document, one, "gain") / number_of(one, "gain") for one in torque.values())
        tiles.append(Tile("Gain, worst joint", f"± {percent(worst)}", "95 % interval"))
    for unit in ("mrad", "mm"):
        residuals = [
            number_of(entry, "residual_rms")
            for joint, entry in entries.items()
            if (units[joint] is PRISMATIC) == (unit == "mm")
        ]
        if residuals:
            shown = f"{significant(1e3 * max(residuals), 2)} {unit}"
            tiles.append(Tile("Residual of simulated positions", shown, "RMS, worst joint"))
    return tiles
