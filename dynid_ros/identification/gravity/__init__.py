"""Gravity parameters of joints that turn one at a time (Ma & Hollerbach 1996)."""
