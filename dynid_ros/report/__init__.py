"""Plots and the HTML reports."""

from dynid_ros.report.demonstration.demonstration import Demonstration
from dynid_ros.report.demonstration.drop_picture import write_drop_picture
from dynid_ros.report.gravity.report import write_gravity_report
from dynid_ros.report.links.report import write_link_report
from dynid_ros.report.load.report import write_load_report
from dynid_ros.report.motion.designed_motion import DesignedMotion
from dynid_ros.report.motion.report import write_design_report

__all__ = [
    "Demonstration",
    "DesignedMotion",
    "write_design_report",
    "write_drop_picture",
    "write_gravity_report",
    "write_link_report",
    "write_load_report",
]
