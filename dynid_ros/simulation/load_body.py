"""A load on the tip link of a MuJoCo arm: a body that has no mass until it is given one."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError
from dynid_ros.model.arrays import finite_vector
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, central_moments

LINK = "load of the simulated arm"
ROUNDING = 1e-9
"""Second moments below zero by less than this fraction of their sum are those of a point, a rod or a plate."""


def add_load_link(root: ET.Element, tip: str) -> None:
    """Add the body to a URDF, fixed to link `tip`, its frame that of `tip`."""
    ET.SubElement(root, "link", name=LINK)
    joint = ET.SubElement(root, "joint", name=f"joint of the {LINK}", type="fixed")
    ET.SubElement(joint, "parent", link=tip)
    ET.SubElement(joint, "child", link=LINK)


def checked_load(parameters: ArrayLike) -> np.ndarray:
    """Parameters (10,) of a load, as floats; a point mass is a load too.

    Raises:
        ModelError: not ten finite numbers.
        DynidError: no body can have them.

    """
    load = finite_vector(parameters, PARAMETERS_PER_LINK, "load (m, m c, inertia about the tip link's frame)")
    if not load[0] > 0.0:
        raise DynidError(f"the load's mass is {load[0]:g} kg; expected more than 0")
    central = central_moments(load)
    if not np.isfinite(central).all():
        raise DynidError(
            f"the load's mass is {load[0]:g} kg, too little for its moments; give mass and moments of one body"
        )
    moments = np.linalg.eigvalsh(central)
    if moments[0] < -ROUNDING * (np.abs(moments).sum() + np.abs(load[4:]).max()):
        raise DynidError(
            f"no body of {load[0]:g} kg has the load's inertia: a second moment about its centre of mass is "
            f"{moments[0]:.3g} kg m^2; the inertia is to be about the frame, not the centre of mass"
        )
    return load


def put_load(model: mujoco.MjModel, load: np.ndarray | None) -> None:
    """Give the body the parameters (10,) of a load, or take all from it; constants that depend on it are left to do."""
    body = model.body(LINK).id
    # MuJoCo takes an inertial frame that was the body's own when the model was compiled for that for ever.
    model.body_sameframe[body] = 0
    if load is None:
        model.body_mass[body] = 0.0
        model.body_ipos[body] = model.body_inertia[body] = 0.0
        return
    # Second moments of mass have the principal axes of the inertia.
    moments, axes = np.linalg.eigh(central_moments(load))
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    model.body_mass[body] = load[0]
    model.body_ipos[body] = load[1:4] / load[0]
    model.body_inertia[body] = np.sum(moments) - moments
    mujoco.mju_mat2Quat(model.body_iquat[body], axes.ravel())
