"""A launch test that skips itself is skipped alone: launch_testing lets the skip end the collection of all."""

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_pycollect_makemodule(module_path, parent):
    outcome = yield
    if outcome.excinfo and issubclass(outcome.excinfo[0], pytest.skip.Exception):
        outcome.force_result(pytest.Module.from_parent(parent, path=module_path))
