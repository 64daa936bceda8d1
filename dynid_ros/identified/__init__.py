"""Sections of the file `identified.yaml`; one module writes and reads each section.

Readers raise `IdentifiedFileError` for a section that is missing, malformed or of another robot. The message names the
file, the place in it, and a remedy.
"""
