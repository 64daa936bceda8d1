"""The report of a gravity identification: one HTML file that needs nothing else."""

from pathlib import Path

import numpy as np

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.static_samples import Samples
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import file_of, mapping
from dynid_ros.identified.validation import read_validations, validate_torque
from dynid_ros.model import RobotModel
from dynid_ros.report.conditioning import condition
from dynid_ros.report.demonstration.demonstration import Demonstration
from dynid_ros.report.demonstration.drift_plot import drift_plot
from dynid_ros.report.demonstration.drop_picture import DropPicture
from dynid_ros.report.gravity.moment_table import joint_rows, moment_figures
from dynid_ros.report.gravity.quality import Quality
from dynid_ros.report.gravity.torque_plots import agreement_plots, rotation_plots
from dynid_ros.report.gravity.verdict import sentences, tiles
from dynid_ros.report.page import write_page
from dynid_ros.report.row_plots import error_plot
from dynid_ros.report.units import joint_units


def write_gravity_report(
    path: str | Path,
    robot: RobotModel,
    document: dict,
    samples: Samples,
    demonstration: Demonstration | None = None,
) -> Path:
    """Write the report of what `document`, the content of `identified.yaml`, says about `robot`.

    The same input gives the same file: it holds no date.

    Args:
        path: of the HTML file; folders are made.
        robot: the arm that was identified.
        document: with a section `gravity`.
        samples: what was fitted.
        demonstration: truth and drop test of a simulated arm.

    Raises:
        IdentifiedFileError: the document has no gravity section, is malformed or of another robot.
        IdentificationError: no samples, or a demonstration of another robot.

    """
    model = IdentifiedGravity(robot, document)
    if len(samples) == 0:
        raise IdentificationError("report: no samples; give the recordings that were identified from")
    if demonstration is not None:
        _check_demonstration(model, demonstration)
    predicted = model.predict(samples)
    fit = validate_torque("fit", robot.joint_names, samples.torque, predicted)
    validations = read_validations(document, robot.joint_names)
    source = mapping(document, "source", file_of(document))
    quality = Quality.of(model, samples, fit, validations, demonstration)
    efforts = " or ".join(sorted({unit.effort for unit in joint_units(robot)}))
    rows = joint_rows(model, samples, demonstration.moments if demonstration else None)
    return write_page(
        path,
        "gravity.html.j2",
        robot=robot,
        model=model,
        units=joint_units(robot),
        source=source,
        settings=mapping(source, "settings", f"{file_of(document)}: source"),
        samples=samples,
        sentences=sentences(model, samples, quality, demonstration),
        tiles=tiles(model, quality, demonstration),
        condition=condition(model.condition_number).explanation,
        rows=rows,
        known_moments=sum(len(row.moments) for row in rows),
        covered=sum(moment.covered for row in rows for moment in row.moments),
        moment_figures=moment_figures(rows),
        rotations=list(rotation_plots(model, samples, predicted)),
        agreements=list(agreement_plots(model, samples, predicted)),
        unknown_approaches=int(np.count_nonzero((samples.direction == 0) & samples.static[:, None])),
        has_viscous=bool(np.isfinite(model.viscous).any()),
        fit=fit,
        residuals=error_plot(robot.joint_names, samples.torque - predicted, f"measured − predicted ({efforts})"),
        validations=validations,
        **_demonstrated(model, demonstration),
    )


def _check_demonstration(model: IdentifiedGravity, demonstration: Demonstration) -> None:
    names, found = model.robot.joint_names, demonstration.joint_names
    if found != names or demonstration.moments.shape != model.moments.shape:
        raise IdentificationError(
            f"demonstration: joints {found} and {demonstration.moments.size} moments; expected {names} and "
            f"{model.moments.size}, of the robot in the report"
        )


def _demonstrated(model: IdentifiedGravity, demonstration: Demonstration | None) -> dict[str, object]:
    """What the sections on fresh poses and on the drop test show."""
    if demonstration is None:
        return {"demonstration": None}
    names = model.robot.joint_names
    loaded = np.flatnonzero(demonstration.largest_torque > 0)
    error = demonstration.torque_error[:, loaded] / demonstration.largest_torque[loaded]
    picture = DropPicture(model.robot, demonstration)
    units = joint_units(model.robot)
    return {
        "demonstration": demonstration,
        "fresh_errors": error_plot([names[i] for i in loaded], 100 * error, "error (% of largest torque)")
        if loaded.size
        else "",
        "drop_pictures": {case: picture.svg(case) for case in ("without", "with")},
        "drift_plots": [drift_plot(demonstration, i, unit) for i, unit in enumerate(units)],
    }
