"""Experiments: which motion tells the parameters best, within limits and workspace."""

from dynid_ros.excitation.experiment import Experiment, Plan
from dynid_ros.excitation.fourier_excitation import FourierExcitation
from dynid_ros.excitation.fourier_plan import FourierPlan
from dynid_ros.excitation.static_rotation import StaticRotation
from dynid_ros.excitation.static_rotation_plan import StaticRotationPlan
from dynid_ros.excitation.stepped_rotation import Dwell

__all__ = [
    "Dwell",
    "Experiment",
    "FourierExcitation",
    "FourierPlan",
    "Plan",
    "StaticRotation",
    "StaticRotationPlan",
]
