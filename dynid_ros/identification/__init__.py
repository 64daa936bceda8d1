"""Parameters from recordings."""

from dynid_ros.identification.gravity import GravityIdentification
from dynid_ros.identification.gravity_result import GravityResult

__all__ = ["GravityIdentification", "GravityResult"]
