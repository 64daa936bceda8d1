"""A module of tests that needs a tool which is not installed is skipped, whoever imports the tool."""

import pytest

TOOLS = ("mujoco", "pinocchio")
"""Those that the package does without."""


class CollectedModule(pytest.Module):
    def collect(self):
        try:
            return super().collect()
        except self.CollectError as error:
            missing = getattr(error.__cause__, "name", None)
            if missing in TOOLS:
                pytest.skip(f"{missing} is not installed", allow_module_level=True)
            raise
