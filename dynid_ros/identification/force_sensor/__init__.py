"""Calibration of a wrist sensor."""
