"""Every error that the package raises on purpose.

Each message names what was wrong and where (file, topic, joint, sample), what was expected and what to do; a
command line prints it as its one line, a service answers with it.
"""


class DynidError(Exception):
    """Parent of all errors of this package."""


class ModelError(DynidError):
    """A URDF, a DH table, friction or a motion that does not make a model of a serial arm."""


class CollisionError(DynidError):
    """Shapes of links or obstacles that cannot be read."""


class RecordingError(DynidError):
    """A recording that cannot be read or cannot be trusted."""


class MocapError(DynidError):
    """Markers that do not tell what is asked of them."""


class TrajectoryError(DynidError):
    """A motion that cannot be built, or that would leave the robot's limits."""


class IdentificationError(DynidError):
    """Data that do not support the parameters asked for."""


class IdentifiedFileError(DynidError):
    """An `identified.yaml` that is malformed or belongs to another robot."""


class ControlError(DynidError):
    """A state of the robot in which no torque may be commanded."""
