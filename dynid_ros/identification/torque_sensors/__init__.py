"""Gains and offsets of joint torque sensors, in place (Ma & Hollerbach 1996)."""
