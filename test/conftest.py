"""However the tests are started: nodes stay on this machine and on a ROS domain of their own, BLAS on one thread."""

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
"""Of this process and its children, as long as it lives: each process of a parallel run has its own."""
os.environ["ROS_DOMAIN_ID"] = DOMAIN.enter_context(own_domain())
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

DRAWN = re.compile(r"/test/(report|demo|guide|rehearsal|docs|jobs/test_torque_sensors)")
"""Modules that look at the pictures of reports."""
NODES = re.compile(r"/test/(launch|nodes)/(?!test_\w*(identification|calibration))")
"""Modules of nodes that write no report, and whose processes need no matplotlib."""


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path, parent):
    """Keep ROS's launch_testing to the launch tests.

    Its plugin imports every module by its bare name to see whether it is one: two modules of the same name, or one that
    skips itself, would end the collection of all.
    """
    return None if module_path.parent.name == "launch" else CollectedModule.from_parent(parent, path=module_path)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection():
    """Modules and tests outlive it: the collector of garbage need not look through them again and again."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def unrendered(request):
    """Leave out the pictures of reports that nobody looks at."""
    path = request.path.as_posix()
    with nullcontext() if DRAWN.search(path) or NODES.search(path) else pictures.unrendered():
        yield


@pytest.fixture
def small_disk(tmp_path):
    """Folder on a file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
