"""Golden record of files and answers: which files each command writes, their keys, and those of `--json`.

Short recordings of a planar arm go through every command; keys are recorded, numbers are not.
"""

from __future__ import annotations

import csv
import json
import re
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import yaml

from benchmarks.golden_inputs import (
    ASLANT,
    JOINTS,
    LINKS,
    LOAD,
    arm_urdf,
    spring_urdf,
    write_motion,
    write_rests,
    write_spring,
    write_weighed,
)
from benchmarks.golden_runs import Shape, dynid, preload, write_part

KEYS = Shape(
    names={"|".join((*JOINTS, "hinge")): "<joint>", "|".join((*LINKS, "bar")): "<link>"},
    tables=("degrees_of_freedom", "std_after", "std_before"),
    kept=("format", "command", "schema"),
    texts=("remarks", "warnings", "undecided", "missing", "not_checked", "hidden", "weak", "together"),
)
ARM = ("--urdf", "arm.urdf")
FIT = ("--friction", "coulomb,viscous,offset", "--prior-weight", "1")
SENSORS = ("--urdf", "arm.urdf", "--gravity", *map(str, ASLANT))
EXCITE = ("excite", *ARM, "--acceleration-limits", "4", "--floor-height", "-inf")

RUNS: dict[str, tuple[str, ...]] = {
    "check": ("check", *ARM, "--recording", "motion.npz", "--motion"),
    "check, faults": ("check", *ARM, "--recording", "amps.npz"),
    "excite fourier": (*EXCITE, "--design-time", "0", "--workers", "1", "--harmonics", "4"),
    "excite joint_by_joint": (*EXCITE, "--motion", "joint_by_joint", "--cycles", "1"),
    "excite poses": (*EXCITE, "--motion", "poses", "--count", "4"),
    "excite static_rotation": (*EXCITE, "--motion", "static_rotation", "--steps", "3"),
    "excite --judge": ("excite", *ARM, "--judge", "motion.npz"),
    "identify gravity": ("identify", "gravity", *ARM, "--recording", "rests.npz", "--validate", "rests.npz"),
    "identify links": ("identify", "links", *ARM, "--recording", "motion.npz", "--validate", "other.npz", *FIT),
    "validate": ("validate", *ARM, "--model", "identify links/identified.yaml", "--recording", "other.npz"),
    "report": ("report", "--model", "identify links/identified.yaml"),
    "identify load": (
        *("identify", "load", *ARM, "--model", "identify links/identified.yaml", "--recording", "loaded.npz"),
    ),
    "identify load --static": (
        *("identify", "load", *SENSORS, "--unloaded", "sensed.npz", "--recording", "sensed_mass.npz", "--static"),
    ),
    "identify load --unloaded": (*("identify", "load", *ARM, "--unloaded", "motion.npz", "--recording", "loaded.npz"),),
    "identify load --source wrench": (
        *("identify", "load", *ARM, "--source", "wrench", "--recording", "weighed.npz", "--static"),
    ),
    "identify flexible": ("identify", "flexible", "--urdf", "spring.urdf", "--recording", "spring.npz"),
    "identify flexible --torsion": (
        *("identify", "flexible", "--urdf", "spring.urdf", "--recording", "spring.npz", "--torsion"),
    ),
    "identify torque-sensors": (
        *("identify", "torque-sensors", *SENSORS, "--recording", "sensed.npz"),
        *("--recording-with-mass", "sensed_mass.npz", "--reference-mass", str(LOAD)),
    ),
}
"""Commands by name, each in a folder with all recordings; where one has an output it is called as the run."""
WITHOUT_OUTPUT = ("check", "check, faults", "excite --judge")
BORDERLINE = ("identify load --static", "identify load --unloaded")
"""Runs whose few samples choose between terms of friction: how this processor rounds decides."""
SINGLE_FILES = {"validate": "predicted.csv", "report": "page.html"}


def files() -> dict:
    """Return exit code, files with their keys, and keys of the JSON document, by run."""
    preload()
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_inputs(folder)
        for run, words in RUNS.items():
            output = folder / SINGLE_FILES.get(run, run)
            where = () if run in WITHOUT_OUTPUT else ("--output", output.name)
            done = dynid(*words, *where, "--json", folder=folder)
            document = json.loads(done.out) if done.out.startswith("{") else {"stdout": done.out, "stderr": done.err}
            written = _written(output)
            found[run] = {
                "exit code": done.code,
                "text on stderr": bool(done.err.strip()),
                "json": _without(KEYS.of(document), written),
                "writes": written,
            }
            if run in BORDERLINE:
                written["identified.yaml"]["friction"] = "of any terms"
            if "error" in document:
                found[run]["error"] = document["error"]
    return found


def _written(output: Path) -> dict:
    """Return what is in each file of a folder, or in one file."""
    paths = sorted(path for path in output.rglob("*") if path.is_file()) if output.is_dir() else [output]
    return {
        str(path.relative_to(output.parent if output.is_file() else output)): _content(path)
        for path in paths
        if path.exists()
    }


def _without(document: object, written: dict) -> object:
    """Return the keys of a JSON document; those that are as in a file are said to be so."""
    if not isinstance(document, dict):
        return document
    told = dict(document)
    for name, content in sorted(written.items()):
        for key in document.keys() & (content.keys() if isinstance(content, dict) else ()):
            if isinstance(document[key], dict) and document[key] == content[key]:
                told[key] = f"as in {name}"
    return told


def _content(path: Path) -> object:
    """Return the keys of a file, by its kind."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix in (".yaml", ".json"):
        return KEYS.of(yaml.safe_load(text))
    if path.suffix == ".csv":
        head = next(csv.reader(text.splitlines()))
        return KEYS.named(",".join(head))
    if path.suffix == ".urdf":
        return sorted({element.tag for element in ElementTree.fromstring(text).iter()})
    if path.suffix == ".html":
        return {"begins": text[:15], "needs other files": bool(re.search(r"(src|href)=\"(?!#|data:)", text))}
    return "calls " + ", ".join(sorted(set(re.findall(r"\b[A-Za-z_]+(?=\()", text))))


def _write_inputs(folder: Path) -> None:
    (folder / "arm.urdf").write_text(arm_urdf())
    (folder / "spring.urdf").write_text(spring_urdf())
    write_motion(folder / "motion.npz")
    write_motion(folder / "other.npz", seconds=5.0, seed=1)
    write_motion(folder / "amps.npz", seconds=5.0, gain=12.0)
    write_motion(folder / "loaded.npz", seed=2, last=1.5 + LOAD)
    write_rests(folder / "rests.npz")
    write_rests(folder / "sensed.npz", gravity=ASLANT, gain=1.1)
    write_rests(folder / "sensed_mass.npz", gravity=ASLANT, gain=1.1, last=1.5 + LOAD)
    write_weighed(folder / "weighed.npz")
    write_spring(folder / "spring.npz")


if __name__ == "__main__":
    write_part(files())
