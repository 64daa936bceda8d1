"""The report of a calibration of torque sensors: one HTML file that needs nothing else."""

from __future__ import annotations

from pathlib import Path

from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult
from dynid_ros.identified.identified_file import new_document
from dynid_ros.report.conditioning import condition
from dynid_ros.report.page import write_page
from dynid_ros.report.row_plots import error_plot
from dynid_ros.report.torque_sensors.table import columns, relative_residual, sensor_rows, sentences, tiles


def write_torque_sensor_report(path: str | Path, result: TorqueSensorResult) -> Path:
    """Write the report of what was calibrated, how well, and what the data leave open.

    The same input gives the same file: it holds no date.
    """
    robot, explained = result.model.robot, condition(result.condition_number)
    source = new_document(robot, result.sources, result.settings)["source"]
    return write_page(
        path,
        "torque_sensors.html.j2",
        robot=robot,
        result=result,
        source=source,
        settings=source["settings"],
        sentences=sentences(result),
        tiles=tiles(result, explained.word),
        columns=columns(result),
        rows=sensor_rows(result),
        residuals=error_plot(
            robot.joint_names, relative_residual(result), "reading − model (% of the readings' range)"
        ),
        condition=explained.explanation,
    )
