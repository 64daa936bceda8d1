"""Signals in time: derivatives, filters, resampling."""

from dynid_ros.signals.derivatives import differentiate

__all__ = ["differentiate"]
