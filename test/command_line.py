"""`dynid` in this process: exit code, and what it says."""

import pytest

from dynid_ros.cli import main
from dynid_ros.files.share import share_path

URDF = str(share_path("config/demo_arm.urdf"))


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


def refused(capsys, *arguments):
    """The one line of a command that ends with exit code 2 and leaves nothing."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("dynid: error: ")
    assert len(err.strip().splitlines()) == 1
    return err
