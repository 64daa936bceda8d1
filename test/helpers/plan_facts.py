"""Entries of a plan's description as objects."""

from types import SimpleNamespace


def entries(plan, key):
    """Return the entries of a list in the facts of a plan, with their values as attributes."""
    return [SimpleNamespace(**entry) for entry in plan.facts[key]]
