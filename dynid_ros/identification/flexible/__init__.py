"""Arms with flexible joints: links, springs and motors (Lightcap and Banks 2007)."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.identification.flexible.flexible_identification import (
        FlexibleJointIdentification as FlexibleJointIdentification,
    )
    from dynid_ros.identification.flexible.flexible_result import FlexibleResult as FlexibleResult
    from dynid_ros.identification.flexible.spring_fit import SpringFit as SpringFit, fit_spring as fit_spring
    from dynid_ros.identification.flexible.torsion_identification import (
        TorsionIdentification as TorsionIdentification,
        TorsionResult as TorsionResult,
    )
    from dynid_ros.mocap.recorded_links import MocapLinks as MocapLinks, mocap_links as mocap_links


offer(globals())
