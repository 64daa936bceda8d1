"""Collect each launch test separately, because launch_testing ends the collection at a skipped module."""

import pytest
from collected_module import CollectedModule


@pytest.hookimpl(hookwrapper=True)
def pytest_pycollect_makemodule(module_path, parent):
    outcome = yield
    if outcome.excinfo:
        outcome.force_result(CollectedModule.from_parent(parent, path=module_path))
