"""Small inputs that once failed, each with its right answer."""

from pathlib import Path

import pytest
from command_line import refused

CASES = Path(__file__).with_name("cases")


@pytest.mark.parametrize("name", ["injection.urdf", "mjcf_newline_link.urdf"])
def test_names_with_line_breaks_are_refused(name, capsys):
    error = refused(capsys, "check", "--urdf", CASES / name, "--recording", "run.csv")
    assert "control character" in error
