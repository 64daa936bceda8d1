"""Plots and the HTML reports."""
