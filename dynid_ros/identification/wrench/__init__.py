"""Equations, frames and gains of a wrist sensor."""
