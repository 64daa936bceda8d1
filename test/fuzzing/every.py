"""All targets that can be fuzzed here."""

from pathlib import Path

import pytest
from fuzzing import models, recordings
from fuzzing.target import Target


def targets(folder: Path) -> tuple[list[Target], list[str]]:
    """The targets, and what is left out and why; `folder` for bags from which others are made."""
    found = [*models.TARGETS, *recordings.targets(folder)]
    try:
        from fuzzing import messages, node_parameters, simulated  # noqa: PLC0415
    except pytest.skip.Exception as error:
        return found, [f"left out: messages to nodes, and their parameters ({error})"]
    return [*found, *messages.TARGETS, *node_parameters.TARGETS, *simulated.TARGETS], []
