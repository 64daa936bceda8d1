"""The arm that the demo simulates: six joints, the proportions of a PA10-class arm."""

from dynid_ros.share import share_path


def demo_arm_urdf() -> str:
    """Text of its URDF.

    Raises:
        DynidError: the package is installed without its `config` folder.

    """
    return share_path("config/demo_arm.urdf").read_text(encoding="utf-8")
