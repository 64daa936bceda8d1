"""Generate URDFs of random arms with any placement and axis, fixed joints, and physical inertias."""

import numpy as np

TIP = "tip"


def random_urdf(rng: np.random.Generator, n_joints: int, prismatic_share: float = 0.3) -> str:
    """Return a chain from `base` to `tip` with moving joints joint_1 … joint_n of all three types."""
    parts = [_link("base", rng)]
    parent = "base"
    for i in range(1, n_joints + 1):
        if rng.random() < 0.4:
            parts += [_joint(f"to_mount_{i}", "fixed", parent, f"mount_{i}", rng), _link(f"mount_{i}", rng)]
            parent = f"mount_{i}"
        kind = "prismatic" if rng.random() < prismatic_share else str(rng.choice(["revolute", "continuous"]))
        parts += [_joint(f"joint_{i}", kind, parent, f"link_{i}", rng), _link(f"link_{i}", rng)]
        parent = f"link_{i}"
        if rng.random() < 0.4:
            parts += [_joint(f"to_beside_{i}", "fixed", parent, f"beside_{i}", rng), _link(f"beside_{i}", rng)]
            parts += [_joint(f"to_on_{i}", "fixed", f"beside_{i}", f"on_{i}", rng), _link(f"on_{i}", rng)]
    parts += [_joint("flange", "fixed", parent, TIP, rng), _link(TIP, rng)]
    return f'<robot name="random">{"".join(parts)}</robot>'


def random_tree_urdf(rng: np.random.Generator, n_links: int, mimic_share: float = 0.4) -> str:
    """Return a tree below `base` with moving joints joint_1 … joint_n, some of which mimic an earlier one."""
    parts = [_link("base", rng)]
    links = ["base"]
    leading = []
    for i in range(1, n_links + 1):
        if rng.random() < 0.3:
            parts += [
                _joint(f"to_mount_{i}", "fixed", str(rng.choice(links)), f"mount_{i}", rng),
                _link(f"mount_{i}", rng),
            ]
            links.append(f"mount_{i}")
        mimics = leading and rng.random() < mimic_share
        # Pinocchio does not support continuous mimic joints
        kind = "prismatic" if rng.random() < 0.3 else "revolute"
        mimic = ""
        if mimics:
            ratio = float(rng.normal())
            offset = float(rng.normal())
            mimic = f'<mimic joint="{rng.choice(leading)}" multiplier="{ratio!r}" offset="{offset!r}"/>'
        else:
            leading.append(f"joint_{i}")
        # either at the last link or anywhere, for long branches and short ones
        parent = links[-1] if rng.random() < 0.5 else str(rng.choice(links))
        parts += [_joint(f"joint_{i}", kind, parent, f"link_{i}", rng, mimic), _link(f"link_{i}", rng)]
        links.append(f"link_{i}")
    return f'<robot name="random_tree">{"".join(parts)}</robot>'


def _link(name: str, rng: np.random.Generator) -> str:
    if rng.random() < 0.1:
        return f'<link name="{name}"/>'
    # inertias of point masses are always physical
    points = rng.normal(scale=0.2, size=(6, 3))
    masses = rng.uniform(0.05, 1.0, 6)
    points -= masses @ points / masses.sum()
    inertia = np.trace(second := (points.T * masses) @ points) * np.eye(3) - second
    names = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), inertia[np.triu_indices(3)], strict=True)
    entries = " ".join(f'{key}="{float(value)!r}"' for key, value in names)
    mass = f'<mass value="{float(masses.sum())!r}"/>'
    return f'<link name="{name}"><inertial>{_origin(rng)}{mass}<inertia {entries}/></inertial></link>'


def _joint(name: str, kind: str, parent: str, child: str, rng: np.random.Generator, mimic: str = "") -> str:
    # axes along x, y or z as on most arms, or general ones that are not unit vectors
    axis = rng.normal(size=3) if rng.random() < 0.5 else np.roll([rng.choice([-1.0, 1.0]), 0.0, 0.0], rng.integers(3))
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{_origin(rng)}'
        f'<axis xyz="{_numbers(axis)}"/><limit lower="-2" upper="2" velocity="3" effort="40"/>{mimic}</joint>'
    )


def _origin(rng: np.random.Generator) -> str:
    rpy = rng.uniform(-np.pi, np.pi, 3) if rng.random() < 0.5 else rng.integers(-2, 3, 3) * np.pi / 2
    return f'<origin xyz="{_numbers(rng.uniform(-0.5, 0.5, 3))}" rpy="{_numbers(rpy)}"/>'


def _numbers(values: np.ndarray) -> str:
    return " ".join(repr(float(value)) for value in values)
