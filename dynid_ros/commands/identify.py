"""`dynid identify`: recordings in, `identified.yaml` and `report.html` out; a module for each kind."""

import argparse

KINDS = {
    "gravity": "gravity parameters, torque offsets and Coulomb friction",
    "links": "masses, mass moments and inertias of all links, friction, rotors",
    "load": "mass, centre and inertia of what the arm carries",
    "flexible": "springs, motor inertias and friction of flexible joints, and their links",
    "torque-sensors": "gains and offsets of the joints' torque sensors, by gravity",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Add what there is to identify."""
    kinds = parser.add_subparsers(required=True, metavar="what")
    for name, purpose in KINDS.items():
        kinds.add_parser(name, help=purpose, module=f"{__package__}.identify_{name.replace('-', '_')}")
