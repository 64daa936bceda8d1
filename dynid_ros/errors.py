"""Errors that the package raises on purpose.

Each message names the problem and its place (file, topic, joint, sample), the expected value and the remedy. A command
prints it as its only line; a service returns it.
"""

MAX_MESSAGE_LENGTH = 1500
"""Longest message, characters; a long list of names is shortened in the middle, because the remedy comes last."""


class DynidError(Exception):
    """Parent of all errors of this package; its text is one line, whatever names a file gives to things."""

    def __str__(self) -> str:
        return one_line(super().__str__())


def one_line(text: str) -> str:
    """Return the text on one line, with escapes for unprintable characters, shortened in the middle."""
    if len(text) > MAX_MESSAGE_LENGTH:
        text = f"{text[: MAX_MESSAGE_LENGTH * 2 // 3]} … {text[-MAX_MESSAGE_LENGTH // 3 :]}"
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


class ModelError(DynidError):
    """A URDF, a DH table, friction or a motion that does not make a model of a serial arm."""


class CollisionError(DynidError):
    """Shapes of links or obstacles that cannot be read."""


class RecordingError(DynidError):
    """A recording that cannot be read or cannot be trusted."""


class MocapError(DynidError):
    """Markers that cannot give the requested result."""


class TrajectoryError(DynidError):
    """A motion that cannot be built, or that would leave the robot's limits."""


class IdentificationError(DynidError):
    """Data that do not support the requested parameters."""


class IdentifiedFileError(DynidError):
    """An `identified.yaml` that is malformed or belongs to another robot."""


class ControlError(DynidError):
    """State of the robot that forbids commanding a torque."""


class WorkerError(DynidError):
    """Processes or a cluster that cannot be had, that do not fit this package, or that are lost with their work."""


class FleetError(DynidError):
    """Fleet file that is malformed or names a missing file."""
