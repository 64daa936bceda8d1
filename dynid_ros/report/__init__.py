"""Plots and the HTML reports."""

from dynid_ros.report.demonstration import Demonstration
from dynid_ros.report.design_report import write_design_report
from dynid_ros.report.designed_motion import DesignedMotion
from dynid_ros.report.drop_picture import write_drop_picture
from dynid_ros.report.gravity_report import write_gravity_report
from dynid_ros.report.link_report import write_link_report
from dynid_ros.report.load_report import write_load_report

__all__ = [
    "Demonstration",
    "DesignedMotion",
    "write_design_report",
    "write_drop_picture",
    "write_gravity_report",
    "write_link_report",
    "write_load_report",
]
