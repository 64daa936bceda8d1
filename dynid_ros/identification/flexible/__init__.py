"""Arms with flexible joints: links, springs and motors (Lightcap and Banks 2007)."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.identification.flexible.flexible_identification import FlexibleJointIdentification
    from dynid_ros.identification.flexible.flexible_result import FlexibleResult
    from dynid_ros.identification.flexible.spring_fit import SpringFit, fit_spring
    from dynid_ros.identification.flexible.torsion_identification import TorsionIdentification, TorsionResult
    from dynid_ros.mocap.recorded_links import MocapLinks, mocap_links

__all__ = [
    "FlexibleJointIdentification",
    "FlexibleResult",
    "MocapLinks",
    "SpringFit",
    "TorsionIdentification",
    "TorsionResult",
    "fit_spring",
    "mocap_links",
]

offer(globals())
