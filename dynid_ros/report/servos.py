"""The report of an identification of position servos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dynid_ros.identification.servo.servo_result import UNITS, ServoJoint, ServoResult
from dynid_ros.identified.validation import Validation
from dynid_ros.recording import Recording
from dynid_ros.report.formats import MISSING, as_fine_as, counted, percent, plus_minus, significant
from dynid_ros.report.page import (
    Cell,
    Figures,
    Legend,
    Plot,
    Section,
    Table,
    Tile,
    agreement_table,
    condition,
    remarks_section,
    result_page,
)
from dynid_ros.report.plots import panel, prediction_plot

SHOWN = 15.0
"""s of a recording that are drawn."""
HEADINGS = {label: label.capitalize() for label in UNITS} | {"viscous": "Viscous and damping"}


def write_servo_report(
    path: str | Path, result: ServoResult, shown: Recording, validations: Sequence[Validation] = ()
) -> Path:
    """Write the report of what was found, how sure it is, and how the simulation follows a recording.

    The same input gives the same file: it holds no date.
    """
    known = [name for name, joint in result.joints.items() if joint.in_torque]
    sections = [_table(result, torque=torque, prismatic=kind) for torque in (False, True) for kind in (False, True)]
    sections += [
        Section(
            "Following error",
            [
                f"{shown.source}: command less position, measured, and simulated from the commands alone.",
                Legend({"measured": "measured", "identified": "simulated"}),
                Figures(_panels(result, shown)),
                *(agreement_table(one) for one in validations),
            ],
        ),
        condition(result.condition_number).section(),
        remarks_section(result.remarks),
    ]
    return result_page(
        "Servos",
        "Identification of position servos",
        result.robot,
        sentences=[
            f"Delay, inertia, damping and friction of {counted(len(result.joints), 'servo')} were found from commands "
            f"and positions; {'all' if len(known) == len(result.joints) else len(known) or 'none'} of them in N m or N."
        ],
        tiles=_tiles(result),
        sections=[section for section in sections if section is not None],
        sources=result.sources,
        settings=result.settings,
    ).write(path)


def _table(result: ServoResult, *, torque: bool, prismatic: bool) -> Section | None:
    """Return the table of the joints of one kind, or nothing where no such joint has a number."""
    joints = {name: joint for name, joint in result.joints.items() if result.is_prismatic(name) == prismatic}
    labels = [label for label in UNITS if any(label in _estimates(joint, torque) for joint in joints.values())]
    if not labels:
        return None
    effort = "N" if prismatic else "N m"
    units = result.units(next(iter(joints)))
    rows = []
    for name, joint in joints.items():
        cells: list[str | Cell] = []
        for label in labels:
            value, error = _estimates(joint, torque).get(label, (np.nan, np.nan))
            half = joint.half(error)
            cells.append(
                Cell(as_fine_as(value, half), [f"± {as_fine_as(half, half)}"]) if np.isfinite(error) else MISSING
            )
        rows.append([name, *cells])
    text = (
        f"With the reference mass: gain, and all else in {effort}. Inertia is the mean of rotor and links in the "
        "recorded poses, gravity the largest in them."
        if torque
        else "Everything but the delay is divided by the gain of the joint, torque per position error: times and "
        f"{'positions' if prismatic else 'angles'}. Inertia is the mean of rotor and links in the recorded poses, "
        "gravity the largest in them. Below each number is half its 95 % interval. A dash stands where the data do not "
        "determine a number."
    )
    return Section(
        (f"In {effort}" if torque else "Over the gain") + (", prismatic joints" if prismatic else ""),
        [text, Table(["Joint", *((HEADINGS[label], units[label][torque]) for label in labels)], rows)],
    )


def _estimates(joint: ServoJoint, torque: bool) -> dict[str, tuple[float, float]]:
    return joint.in_torque if torque else joint.over_gain


def _tiles(result: ServoResult) -> list[Tile]:
    delays = {name: joint.over_gain["delay"] for name, joint in result.joints.items()}
    slowest = max(delays, key=lambda name: np.nan_to_num(delays[name][0]))
    value, error = delays[slowest]
    half = 1e3 * result.joints[slowest].half(error)
    found = [Tile("Longest delay", f"{plus_minus(1e3 * value, half)} ms", slowest)]
    gains = {name: joint.in_torque["gain"] for name, joint in result.joints.items() if joint.in_torque}
    if gains:
        worst = max(result.joints[name].half(error) / value for name, (value, error) in gains.items())
        found.append(Tile("Gain, worst joint", f"± {percent(worst)}", "95 % interval"))
    for unit in ("rad", "m"):
        errors = [joint.rms for name, joint in result.joints.items() if result.position_unit(name) == unit]
        if errors:
            left = f"{significant(1e3 * max(errors), 2)} m{unit}"
            found.append(Tile("Simulated positions", left, "RMS error, worst joint"))
    return [*found, condition(result.condition_number).tile]


def _panels(result: ServoResult, shown: Recording) -> list[Plot]:
    told, measured, simulated = result.simulate(shown)[0]
    rate = (shown.n_samples - 1) / shown.duration
    some = slice(0, max(int(SHOWN * rate), 2))
    time = np.arange(len(told))[some] / rate
    panels = []
    for j, name in enumerate(result.model.robot.joint_names):
        both = 1e3 * (told - measured)[some, j], 1e3 * (told - simulated)[some, j]
        label = f"Following error of {name} over time, measured and simulated"
        unit = f"m{result.position_unit(name)}"
        picture = prediction_plot(label, f"error ({unit})", time, *both)
        panels.append(panel(name, picture, float(np.sqrt(np.mean((both[0] - both[1]) ** 2))), unit))
    return panels


def write_result_report(
    path: str | Path,
    result: ServoResult,
    recordings: Mapping[str, Sequence[Recording]],
    validations: Sequence[Validation],
) -> Path:
    """Write the report of a result, which shows the first recording that was not fitted; see `write_servo_report`."""
    shown = (*recordings.get("validate", ()), *recordings["recordings"])[0]
    return write_servo_report(path, result, shown, validations)
