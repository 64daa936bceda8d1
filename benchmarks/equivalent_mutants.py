"""Mutants that change nothing that anybody could see, and why."""

EQUIVALENT: dict[tuple[str, str, str], str] = {}
"""By file below dynid_ros, expression before and after (first lines)."""
