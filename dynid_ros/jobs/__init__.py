"""Whole jobs from files to files, the same for the command line and the nodes."""
