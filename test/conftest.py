"""Isolate ROS nodes of the tests on this machine and one domain, and limit BLAS to one thread."""

import gc
import os
import re
import subprocess
from contextlib import ExitStack, nullcontext

import pictures
import pytest
from collected_module import CollectedModule

import dynid_ros.one_thread  # noqa: F401 - before any test imports numpy
from dynid_ros.nodes.shared.process import own_domain

DOMAIN = ExitStack()
"""ROS domain of this process and its children until it ends; parallel processes have different ones."""
os.environ["ROS_DOMAIN_ID"] = DOMAIN.enter_context(own_domain())
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

DRAWN = re.compile(r"/test/(report|demo|guide|rehearsal|docs|jobs/test_torque_sensors)")
"""Modules whose tests check pictures of reports."""
NODES = re.compile(r"/test/(launch|nodes)/(?!test_\w*(identification|calibration))")
"""Modules of nodes that write no reports and need no matplotlib."""


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path, parent):
    """Restrict ROS's launch_testing to the launch tests.

    Its plugin imports each module by its bare name. Two modules of equal name, or one that skips itself, would end the
    collection.
    """
    return None if module_path.parent.name == "launch" else CollectedModule.from_parent(parent, path=module_path)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection():
    """Exclude imported modules from garbage collection, which is slow for many objects."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def unrendered(request):
    """Skip rendering of report pictures that no test checks."""
    path = request.path.as_posix()
    with nullcontext() if DRAWN.search(path) or NODES.search(path) else pictures.unrendered():
        yield


@pytest.fixture
def small_disk(tmp_path):
    """Return a folder on a file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
