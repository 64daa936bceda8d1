"""Faults of recordings, looked for before anything is fitted."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.checks.all_checks import check as check


offer(globals())
