"""Parameters from recordings."""

from dynid_ros.identification.gravity import GravityIdentification
from dynid_ros.identification.gravity_result import GravityResult
from dynid_ros.identification.link_result import LinkResult
from dynid_ros.identification.links import LinkIdentification

__all__ = ["GravityIdentification", "GravityResult", "LinkIdentification", "LinkResult"]
