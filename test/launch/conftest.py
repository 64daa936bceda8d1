"""A launch test that cannot be imported, or skips itself, does so alone; launch_testing would end the collection."""

import pytest
from collected_module import CollectedModule


@pytest.hookimpl(hookwrapper=True)
def pytest_pycollect_makemodule(module_path, parent):
    outcome = yield
    if outcome.excinfo:
        outcome.force_result(CollectedModule.from_parent(parent, path=module_path))
