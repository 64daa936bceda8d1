"""Motions: minimum jerk, single-joint steps, Fourier series; their limits, and how to stop them."""

from dynid_ros.trajectories.checks import check_limits, check_start
from dynid_ros.trajectories.experiment import Experiment, Plan
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.fourier_excitation import FourierExcitation
from dynid_ros.trajectories.fourier_plan import FourierPlan
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.minimum_jerk import minimum_jerk, move, shortest_duration
from dynid_ros.trajectories.progress import MotionInProgress
from dynid_ros.trajectories.static_rotation import StaticRotation
from dynid_ros.trajectories.static_rotation_plan import StaticRotationPlan
from dynid_ros.trajectories.stepped_rotation import Dwell
from dynid_ros.trajectories.stopping import stop
from dynid_ros.trajectories.trajectory import Trajectory
from dynid_ros.trajectories.workspace import Workspace

__all__ = [
    "Dwell",
    "Experiment",
    "FourierExcitation",
    "FourierPlan",
    "FourierSeries",
    "MotionInProgress",
    "MotionLimits",
    "Plan",
    "StaticRotation",
    "StaticRotationPlan",
    "Trajectory",
    "Workspace",
    "check_limits",
    "check_start",
    "minimum_jerk",
    "move",
    "shortest_duration",
    "stop",
]
