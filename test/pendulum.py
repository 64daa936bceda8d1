"""Provide the URDF of a point mass on a massless rod, whose motion has a closed form."""

MASS = 3.0
LENGTH = 0.7
LIMIT = '<limit lower="-10" upper="10" velocity="20" effort="100"/>'


def point_mass(inertia: float = 1e-6) -> str:
    """Return the mass at `LENGTH` along x with a small `inertia` in kg m² about its center."""
    return (
        f'<inertial><origin xyz="{LENGTH} 0 0"/><mass value="{MASS}"/>'
        f'<inertia ixx="{inertia}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def urdf(
    axis: str = "0 1 0", limit: str = LIMIT, kind: str = "revolute", rod: str | None = None, more: str = ""
) -> str:
    """Return a URDF with joint 'swing' about `axis`, the rod along x at zero, and `more` elements after it."""
    return (
        f'<robot name="pendulum"><link name="base"/><joint name="swing" type="{kind}"><parent link="base"/>'
        f'<child link="rod"/><axis xyz="{axis}"/>{limit}</joint>'
        f'<link name="rod">{point_mass() if rod is None else rod}</link>{more}</robot>'
    )
