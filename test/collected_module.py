"""Skip test modules that need a tool that is not installed."""

import pytest

TOOLS = ("mujoco", "pinocchio", "rclpy", "viser", "yourdfpy")
"""Optional tools."""
ROS_INTERFACES = ("_interfaces", "_msgs", "_srvs")


class CollectedModule(pytest.Module):
    def collect(self):
        try:
            return super().collect()
        except self.CollectError as error:
            missing = getattr(error.__cause__, "name", None) or ""
            if missing in TOOLS or missing.endswith(ROS_INTERFACES):
                pytest.skip(f"{missing} is not installed", allow_module_level=True)
            raise
