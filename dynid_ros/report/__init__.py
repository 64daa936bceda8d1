"""Plots and the HTML reports."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.report.drop_test import Demonstration, write_drop_picture
    from dynid_ros.report.gravity import write_gravity_report
    from dynid_ros.report.links import write_link_report
    from dynid_ros.report.load import write_load_report
    from dynid_ros.report.motion import DesignedMotion, write_design_report

__all__ = [
    "Demonstration",
    "DesignedMotion",
    "write_design_report",
    "write_drop_picture",
    "write_gravity_report",
    "write_link_report",
    "write_load_report",
]

offer(globals())
