"""Every error that the package raises on purpose.

Each message names what was wrong and where (file, topic, joint, sample), what was expected and what to do; a
command line prints it as its one line, a service answers with it.
"""

LONGEST = 1500
"""Characters of a message; a list of names can be long, the way out stands at the end."""


class DynidError(Exception):
    """Parent of all errors of this package; its text is one line, whatever names a file gives to things."""

    def __str__(self) -> str:
        return one_line(super().__str__())


def one_line(text: str) -> str:
    """The text without ends of lines, with escapes for what is no printable character, shortened in the middle."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST * 2 // 3]} … {text[-LONGEST // 3 :]}"
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


class ModelError(DynidError):
    """A URDF, a DH table, friction or a motion that does not make a model of a serial arm."""


class CollisionError(DynidError):
    """Shapes of links or obstacles that cannot be read."""


class RecordingError(DynidError):
    """A recording that cannot be read or cannot be trusted."""


class MocapError(DynidError):
    """Markers that do not say what is asked of them."""


class TrajectoryError(DynidError):
    """A motion that cannot be built, or that would leave the robot's limits."""


class IdentificationError(DynidError):
    """Data that do not support the parameters asked for."""


class IdentifiedFileError(DynidError):
    """An `identified.yaml` that is malformed or belongs to another robot."""


class ControlError(DynidError):
    """A state of the robot in which no torque may be commanded."""


class WorkerError(DynidError):
    """Processes or a cluster that cannot be had, that do not fit this package, or that are lost with their work."""


class FleetError(DynidError):
    """The file of a fleet that is malformed, or names what does not exist."""
