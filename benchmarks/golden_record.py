"""What the package computes, frozen: compare with the record, or write it anew.

    python -m benchmarks.golden_record [--quick] [--only links,load]    exit 0: equal, 1: differences are printed
    python -m benchmarks.golden_record --write [--only links]

Numbers may differ by 1e-9 of the largest in their array, or of themselves where they stand alone; all else not at all.
Where it was written with other versions of the libraries, or on another processor, small differences say nothing.
A case whose input differs says so: then its results tell nothing. Deliberate changes are listed in golden/changes.yaml,
each as a pattern for the path and a reason; they are printed and accepted. Real recordings are those of DYNID_DATA.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np
import yaml

from benchmarks import golden_numbers, golden_others
from benchmarks.golden_numbers import Case, reduced
from dynid_ros.recording import Recording
from dynid_ros.simulation import demo_arm_urdf

FOLDER = Path(__file__).parent / "golden"
NUMBERS, RECORDINGS, INTERFACES = "numbers.json", "recordings.json", "interfaces.json"
CHANGES, ENVIRONMENT = "changes.yaml", "environment.json"
COMPUTING = ("numpy", "scipy", "mujoco", "trimesh", "pin")
MODULES = {"pin": "pinocchio"}
RELATIVE = 1e-9
NEGLIGIBLE = 1e-12
"""Difference of a number that stands alone, as part of the largest beside it, that is only rounding."""
SLOW = ("checks", "command_line", "interfaces")
"""Parts that `--quick` leaves out, beside the real recordings."""


@dataclass(frozen=True)
class Part:
    """A part of the record: what it computes, and the file that holds it."""

    name: str
    file: str
    compute: Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Difference:
    """Where the record differs, and by what."""

    path: str
    was: Any
    now: Any
    relative: float | None = None

    def __str__(self) -> str:
        share = "" if self.relative is None else f"  (relative {self.relative:.2g})"
        return f"{self.path}: was {_shown(self.was)}, is {_shown(self.now)}{share}"


def cases(function: Callable[[], Iterator[Case]]) -> Callable[[], dict[str, Any]]:
    """Collect the cases of a part, reduced to plain values."""

    def compute() -> dict[str, Any]:
        found, inputs = {}, {}
        for name, put, got in function():
            plain = terse(reduced(put))
            same = next((other for other, known in inputs.items() if known == plain), None)
            inputs.setdefault(name if same is None else same, plain)
            found[name] = {"input": plain if same is None else f"that of {same}", "result": reduced(got)}
        return json.loads(json.dumps(found))

    return compute


def terse(value: Any) -> Any:
    """Leave of the arrays of an input what shows that they have changed."""
    if isinstance(value, dict):
        left = {"first", "last", "not_finite"} if _is_array(value) else set()
        return {key: terse(entry) for key, entry in value.items() if key not in left}
    return [terse(entry) for entry in value] if isinstance(value, list) else value


def command_line() -> Iterator[Case]:
    """What `dynid` answers to whole commands: its JSON document, its exit code, and the file that it writes."""
    import link_experiment  # noqa: PLC0415 needs packages that not every part needs
    import planar_arm  # noqa: PLC0415
    import torque_sensor_bench as bench  # noqa: PLC0415
    import weighed_loads  # noqa: PLC0415
    from gravity_experiment import demo_recording  # noqa: PLC0415
    from torsion_recordings import flexible_joint  # noqa: PLC0415

    robot, truth = link_experiment.planar()
    sensors, rng = bench.Truth.draw(np.random.default_rng(0), bench.aslant_robot()), np.random.default_rng(2)
    recordings = {"rests": demo_recording(), "spring": flexible_joint(2e5)}
    recordings |= {f"motion_{seed}": link_experiment.record(robot, truth, seed) for seed in (0, 1)}
    recordings |= {name: bench.recording(sensors, rng, loaded=name == "mass") for name in ("plain", "mass")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        known = weighed_loads.files(folder)
        for label, recording in recordings.items():
            recording.write_npz(folder / f"{label}.npz")
        (folder / "planar.urdf").write_text(planar_arm.urdf())
        (folder / "demo.urdf").write_text(demo_arm_urdf())
        planar, demo = f"--urdf {folder}/planar.urdf", f"--urdf {folder}/demo.urdf"
        gravity = " ".join(map(str, bench.GRAVITY))
        put = {"resting": Recording.read(known.resting)}
        commands = {
            "check": f"{planar} --recording {folder}/motion_0.npz --motion",
            "excite": f"{planar} --acceleration-limits 4 --motion poses --count 3",
            "identify gravity": f"{demo} --recording {folder}/rests.npz",
            "identify links": f"{planar} --recording {folder}/motion_0.npz",
            "validate": f"{planar} --model {folder}/identify_links/identified.yaml --recording {folder}/motion_1.npz",
            "identify load": f"--urdf {known.urdf} --model {known.model} --recording {known.resting} --static",
            "identify torque-sensors": f"{demo} --gravity {gravity} --recording {folder}/plain.npz "
            f"--recording-with-mass {folder}/mass.npz --reference-mass {bench.MASS}",
        }
        for words, options in commands.items():
            own = folder / (words.replace(" ", "_") if words != "validate" else "predicted.csv")
            arguments = [*words.split(), *options.split()] + ([] if words == "check" else ["--output", str(own)])
            done = subprocess.run(
                [sys.executable, "-m", "dynid_ros", *arguments, "--json"], capture_output=True, text=True, check=False
            )
            written = {file.name: yaml.safe_load(file.read_text()) for file in sorted(own.glob("*.yaml"))}
            answer = json.loads(done.stdout)
            for document in written.values():  # what stands in both is told once
                answer = {key: value for key, value in answer.items() if document.get(key) != value}
            if words == "identify load":
                written.clear()  # it repeats the arm's; the load is in the answer
            found = written | {"exit code": done.returncode, "answer": answer}
            yield words, recordings | put, relative(found, folder)


def relative(value: Any, folder: Path) -> Any:
    """Leave out the folder in texts, and the version of the package."""
    if isinstance(value, dict):
        return {key: relative(entry, folder) for key, entry in value.items() if key not in ("version", "seconds")}
    if isinstance(value, list):
        return [relative(entry, folder) for entry in value]
    return value.replace(f"{folder}/", "") if isinstance(value, str) else value


def interfaces() -> dict[str, Any]:
    """Read the interfaces by the module that tells them."""
    from benchmarks import golden_interfaces  # noqa: PLC0415 it may not exist

    return json.loads(json.dumps(golden_interfaces.interfaces()))


def parts() -> list[Part]:
    """All parts that can be computed here, in order."""
    simulated = (*golden_numbers.PARTS, *golden_others.PARTS, command_line)
    found = [Part(function.__name__, NUMBERS, cases(function)) for function in simulated]
    found += [Part(f.__name__, RECORDINGS, cases(f)) for f in golden_others.RECORDED]
    if find_spec("benchmarks.golden_interfaces"):
        found.append(Part("interfaces", INTERFACES, interfaces))
    return found


def differences(was: Any, now: Any, path: str = "") -> Iterator[Difference]:
    """Tell every difference between two plain values."""
    if isinstance(was, dict) and isinstance(now, dict):
        if _is_array(was) and _is_array(now):
            yield from _of_arrays(was, now, path)
            return
        numbers = [abs(v) for v in was.values() if isinstance(v, float)]
        negligible = NEGLIGIBLE * max(numbers, default=0.0)
        for key in sorted({*was, *now}):
            below = f"{path}/{key}" if path else key
            if key not in was or key not in now:
                yield Difference(below, was.get(key, "nothing"), now.get(key, "nothing"))
            elif isinstance(was[key], float) and isinstance(now[key], float):
                size = max(abs(was[key]), abs(now[key]))
                yield from _of_numbers([was[key]], [now[key]], below, max(RELATIVE * size, negligible))
            else:
                yield from differences(was[key], now[key], below)
    elif isinstance(was, list) and isinstance(now, list):
        yield from _of_lists(was, now, path)
    elif isinstance(was, float) and isinstance(now, float):
        yield from _of_numbers([was], [now], path, RELATIVE * max(abs(was), abs(now)))
    elif type(was) is not type(now) or was != now:
        yield Difference(path, was, now)


def _is_array(value: dict) -> bool:
    return "signed_mean" in value


def _of_arrays(was: dict, now: dict, path: str) -> Iterator[Difference]:
    size = max(was["largest"], now["largest"])
    scale = {"norm": max(was["norm"], now["norm"])}
    for key, before in was.items():
        below = f"{path}/{key}"
        if isinstance(before, (int, str)) or key == "shape":
            yield from differences(before, now[key], below)
        elif isinstance(before, list):
            yield from _of_numbers(before, now[key], below, RELATIVE * size)
        else:
            yield from _of_numbers([before], [now[key]], below, RELATIVE * scale.get(key, size))


def _of_lists(was: list, now: list, path: str) -> Iterator[Difference]:
    if len(was) != len(now):
        yield Difference(path, was, now)
    elif any(isinstance(v, float) for v in was) and all(isinstance(v, (float, str)) for v in [*was, *now]):
        size = max(abs(v) for v in [*was, *now] if isinstance(v, float))
        yield from _of_numbers(was, now, path, RELATIVE * size)
    else:
        for k, (before, after) in enumerate(zip(was, now, strict=True)):
            yield from differences(before, after, f"{path}/{k}")


def _of_numbers(was: list, now: list, path: str, allowed: float) -> Iterator[Difference]:
    """Compare numbers; those that are not finite are texts."""
    for k, (before, after) in enumerate(zip(was, now, strict=True)):
        if isinstance(before, str) or isinstance(after, str):
            equal, relative = before == after, None
        else:
            off = abs(before - after)
            equal, relative = off <= allowed, off / max(abs(before), abs(after), 1e-300)
        if not equal:
            yield Difference(path if len(was) == 1 else f"{path}/{k}", before, after, relative)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."


def accepted(path: str, changes: list[dict[str, str]]) -> str | None:
    """Find the reason for a deliberate change; None if there is none."""
    return next((change["reason"] for change in changes if fnmatchcase(path, change["path"])), None)


def read(part: Part) -> dict[str, Any] | None:
    """Read the record of a part; None if there is none. That of the interfaces has its file for itself."""
    path = FOLDER / part.file
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return record if record is None or part.file == INTERFACES else record.get(part.name)


def write(part: Part, now: dict[str, Any]) -> None:
    """Write the record of a part, readable and in order; short lists take one line."""
    path = FOLDER / part.file
    FOLDER.mkdir(exist_ok=True)
    if part.file == INTERFACES:
        path.write_text(json.dumps(now, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
        return
    others = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(_text(others | {part.name: now}) + "\n", encoding="utf-8")


def _text(value: Any, indent: str = "") -> str:
    """Write as JSON; what fits stands on one line, so that the record stays small."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(line) + len(indent) <= 160 or not isinstance(value, (dict, list)) or "signed_mean" in value:
        return line
    deeper = indent + " "
    if isinstance(value, list):
        return "[\n" + ",\n".join(deeper + _text(v, deeper) for v in value) + f"\n{indent}]"
    rows = (f"{deeper}{json.dumps(k, ensure_ascii=False)}: {_text(value[k], deeper)}" for k in sorted(value))
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def environment() -> dict[str, str]:
    """Versions of the libraries that compute, and the processor: with others, searches end elsewhere."""
    found = {name: version(name) for name in COMPUTING if find_spec(MODULES.get(name, name))}
    information = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    flags = re.search(r"^flags\s*:(.*)$", information, re.MULTILINE)
    features = " ".join(sorted(flags[1].split())) if flags else platform.machine()
    return found | {"processor": hashlib.sha256(features.encode()).hexdigest()[:12]}


def elsewhere() -> str:
    """What the record was written with that is not here; empty: all of it is."""
    was, now = json.loads((FOLDER / ENVIRONMENT).read_text(encoding="utf-8")), environment()
    others = (name for name in sorted(was) if was[name] != now.get(name))
    return ", ".join(f"{name} {was[name]} (here {now.get(name)})" for name in others)


def compare(part: Part, now: dict[str, Any], changes: list[dict[str, str]]) -> int:
    """Print how a part differs from the record; returns the number of differences that are not accepted."""
    was = read(part)
    if was is None:
        print(f"{part.name}: not in golden/{part.file}; write it with --write --only {part.name}")
        return 1
    if part.file != INTERFACES and (names := changed_inputs(was, now)):
        print(f"{part.name}: the input has changed, so the results tell nothing, of {'; '.join(names)}")
    count = 0
    for found in differences(was, now, part.name):
        if reason := accepted(found.path, changes):
            print(f"accepted: {found} — {reason}")
        else:
            count += 1
            print(found)
    return count


def changed_inputs(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Name the cases of a part that are given something else than they were, themselves or by another's name."""
    common = sorted(was.keys() & now.keys())
    own = {case for case in common if any(differences(was[case]["input"], now[case]["input"]))}
    return [case for case in common if case in own or now[case]["input"] in [f"that of {other}" for other in own]]


def chosen(options: argparse.Namespace) -> list[Part]:
    """Select the parts that were asked for; says which are skipped."""
    known = parts()
    names = options.only.split(",") if options.only else [part.name for part in known]
    if unknown := sorted(set(names) - {part.name for part in known}):
        sys.exit(f"no such part: {', '.join(unknown)}; there are {', '.join(part.name for part in known)}")
    found = [part for part in known if part.name in names]
    if options.quick:
        found = [part for part in found if part.name not in SLOW and part.file != RECORDINGS]
    if not os.environ.get("DYNID_DATA"):
        for part in found:
            if part.file == RECORDINGS:
                print(f"{part.name}: skipped, DYNID_DATA is not set")
        found = [part for part in found if part.file != RECORDINGS]
    return found


def main() -> None:
    """Compare or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the record")
    parser.add_argument("--only", help="parts, separated by commas")
    parser.add_argument("--quick", action="store_true", help="the parts that take seconds")
    options = parser.parse_args()
    path = FOLDER / CHANGES
    changes = (yaml.safe_load(path.read_text()) or []) if path.exists() else []
    failed = 0
    for part in chosen(options):
        start = sum(os.times()[:4])
        try:
            now = part.compute()
        except Exception:
            failed += 1
            print(f"{part.name}: raises\n{traceback.format_exc()}")
            continue
        if options.write:
            write(part, now)
            different = 0
        else:
            different = compare(part, now, changes)
        failed += different
        word = "written" if options.write else f"{different} differences" if different else "equal"
        print(f"{part.name}: {word} ({sum(os.times()[:4]) - start:.1f} s)", flush=True)
    if options.write:
        (FOLDER / ENVIRONMENT).write_text(json.dumps(environment(), indent=1) + "\n", encoding="utf-8")
    elif failed and (other := elsewhere()):
        print(f"the record was written with {other}: small differences may be of that alone")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
