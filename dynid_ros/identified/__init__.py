"""Sections of the file `identified.yaml`: each is written and read in one module.

Readers raise `IdentifiedFileError`, which names file, place and remedy, for a section that is missing, malformed or of
another robot.
"""
