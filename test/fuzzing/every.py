"""All fuzzing targets that can run on this machine."""

from pathlib import Path

import pytest
from fuzzing import models, recordings
from fuzzing.target import Target


def list_targets(folder: Path) -> tuple[list[Target], list[str]]:
    """Return the targets and a remark on omitted ones; `folder` receives the bags that are mutated."""
    targets = [*models.TARGETS, *recordings.list_targets(folder)]
    try:
        from fuzzing import messages, node_parameters, simulated  # noqa: PLC0415
    except pytest.skip.Exception as error:
        return targets, [f"left out: messages to nodes, and their parameters ({error})"]
    return [*targets, *messages.TARGETS, *node_parameters.TARGETS, *simulated.TARGETS], []
