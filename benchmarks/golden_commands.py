"""Golden record of the command line: options of every command of `dynid`, and how it answers mistakes."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.golden_inputs import arm_urdf, write_motion
from benchmarks.golden_runs import command, dynid, forked, plain, preload, write_part

ACTIONS = {
    "_StoreAction": "value",
    "_StoreTrueAction": "flag",
    "_StoreFalseAction": "flag, false",
    "_AppendAction": "value, repeatable",
    "_HelpAction": "help",
    "_VersionAction": "version",
}
ARM = ("--urdf", "arm.urdf")
RUN = (*ARM, "--recording", "run.npz")
MISTAKES: dict[str, tuple[str, ...]] = {
    "no command": (),
    "no such command": ("identity",),
    "no such option": ("check", *RUN, "--nonsense"),
    "nothing to identify": ("identify",),
    "abbreviated option": ("check", *ARM, "--rec", "run.npz"),
    "ambiguous abbreviation": ("excite", *ARM, "--po", "1"),
    "option without its value": ("check", *RUN, "--tip"),
    "option missing": ("identify", "links", *RUN),
    "no such choice": ("identify", "links", *RUN, "--output", "out", "--estimator", "guess"),
    "no number": ("identify", "links", *RUN, "--output", "out", "--cutoff", "fast"),
    "URDF missing": ("check", "--recording", "run.npz"),
    "no such URDF": ("check", "--urdf", "nowhere.urdf", "--recording", "run.npz"),
    "no such recording": ("check", *ARM, "--recording", "nowhere.npz"),
    "no such model": ("validate", *RUN, "--model", "nowhere.yaml", "--output", "predicted.csv"),
    "no such link": ("check", *RUN, "--tip", "claw"),
    "no such joint": ("excite", *ARM, "--output", "out", "--acceleration-limits", "elbow=2"),
    "too few values": ("excite", *ARM, "--output", "out", "--acceleration-limits", "2,3"),
    "recording of other joints": ("check", *ARM, "--recording", "other.npz"),
    "no friction term": ("identify", "links", *RUN, "--output", "out", "--friction", "rust"),
    "no such node": ("node", "pilot"),
    "output is a file": ("identify", "gravity", *RUN, "--output", "run.npz"),
}
"""What is typed wrongly, in a folder with `arm.urdf`, `run.npz` of its joints and `other.npz` of other joints."""


def commands() -> dict:
    """Return options by command, and exit codes of mistakes."""
    preload()
    return {"options": options(), "mistakes": mistakes(), "asked": asked()}


def options(*words: str) -> dict:
    """Return the options of all commands that begin with `words`, from the parser whose help is asked for."""
    described = _described(*words)
    found = {" ".join(["dynid", *words]): described}
    for name in described.get("commands", ()):
        found |= options(*words, name)
    return found


def _described(*words: str) -> dict:
    """Return what the parser holds that prints the help of a command, wherever it is built."""

    def work() -> None:
        def instead(parser: argparse.ArgumentParser, _file: object = None) -> None:
            print(json.dumps(_parser(parser)), flush=True)
            os._exit(0)

        argparse.ArgumentParser.print_help = instead  # type: ignore[assignment, method-assign]
        sys.argv = ["dynid", *words, "--help"]
        main()

    main = command()
    done = forked(work)
    if done.code:
        raise RuntimeError(f"dynid {' '.join(words)} --help: exit code {done.code}\n{done.err}")
    return json.loads(done.out.splitlines()[-1])


def _parser(parser: argparse.ArgumentParser) -> dict:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    together = [
        sorted(action.option_strings[-1] for action in group._group_actions)
        for group in parser._mutually_exclusive_groups
    ]
    told = {
        "options": {_name(action): _option(action) for action in parser._actions if action not in below},
        "abbreviations": parser.allow_abbrev,
    }
    told |= {"exclude each other": sorted(together)} if together else {}
    return told | ({"commands": sorted(below[0].choices)} if below else {})


def _name(action: argparse.Action) -> str:
    return ", ".join(action.option_strings) or str(action.metavar or action.dest)


def _option(action: argparse.Action) -> str:
    """Return how an option is given; what argparse takes for granted is left out."""
    kind = ACTIONS.get(type(action).__name__, type(action).__name__)
    told = ["required"] if action.required else []
    told += [] if action.type is None else [f"type {getattr(action.type, '__name__', action.type)}"]
    told += [] if action.nargs in (None, 0) else [f"nargs {action.nargs}"]
    told += [] if action.choices is None else [f"one of {', '.join(sorted(map(str, action.choices)))}"]
    told += [] if action.metavar is None else [f"metavar {json.dumps(plain(action.metavar))}"]
    if action.default not in (None, argparse.SUPPRESS) and (action.default, kind) != (False, "flag"):
        told.append(f"default {json.dumps(plain(action.default))}")
    return "; ".join([kind, *told])


def mistakes() -> dict:
    """Return exit code, kind of error and what is printed where, by mistake."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_inputs(folder)
        before = sorted(path.name for path in folder.iterdir())
        for mistake, words in MISTAKES.items():
            done = dynid(*words, *(["--json"] if words else []), folder=folder)
            document = json.loads(done.out) if done.out.startswith("{") else {}
            found[mistake] = {
                "exit code": done.code,
                "document": ", ".join(sorted(document)),
                "kind": document.get("kind"),
                "lines on stderr": len(done.err.splitlines()),
                "starts with": done.err[: len("dynid: error: ")] if document else "",
                "leaves files": sorted({path.name for path in folder.iterdir()} - set(before)),
            }
    return found


def asked() -> dict:
    """Return exit codes of the installed script itself, and of the module."""
    beside = Path(sys.executable).with_name("dynid")
    script = str(beside) if beside.exists() else shutil.which("dynid")
    ways = {
        "dynid": [script],
        "dynid --help": [script, "--help"],
        "dynid --version": [script, "--version"],
        "dynid check --nonsense": [script, "check", "--nonsense"],
        "dynid check of no file": [script, "check", "--urdf", "nowhere.urdf", "--recording", "nowhere.npz"],
        "python -m dynid_ros --version": [sys.executable, "-m", "dynid_ros", "--version"],
    }
    found = {}
    for name, words in ways.items():
        done = subprocess.run(list(filter(None, words)), capture_output=True, text=True, check=False)
        found[name] = {"exit code": done.returncode, "stdout": bool(done.stdout), "stderr": bool(done.stderr)}
        if "--version" in words:
            found[name]["stdout"] = done.stdout.strip()
    return found


def _write_inputs(folder: Path) -> None:
    (folder / "arm.urdf").write_text(arm_urdf())
    write_motion(folder / "run.npz", seconds=1.0)
    write_motion(folder / "other.npz", seconds=1.0, names=("left", "middle", "right"))


if __name__ == "__main__":
    write_part(commands())
