"""Excite, record, identify and compensate the dynamics of a serial arm."""

__version__ = "0.1.0"
