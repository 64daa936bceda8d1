"""Run `dynid` in this process."""

import argparse

import pytest

from dynid_ros.cli import _parser, main
from dynid_ros.files.bounded import share_path

URDF = str(share_path("config/demo_arm.urdf"))


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


def run_refused(capsys, *arguments):
    """Return the error line of a command that ends with exit code 2 and leaves no files."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("dynid: error: ")
    assert len(err.strip().splitlines()) == 1
    return err


def commands(parser=None, words=()):
    """Return the parsers of all commands by their words, with their options."""
    parser = parser or _parser()
    parser.build()
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        return {" ".join(words): parser}
    return {n: p for name, child in below[0].choices.items() for n, p in commands(child, (*words, name)).items()}
