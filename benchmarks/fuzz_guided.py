"""Inputs led by coverage; what `benchmarks/fuzz.py` calls in a process of its own.

    python benchmarks/fuzz_guided.py SEED FOLDER '{"URDF": 1000, ...}'

Atheris has to see this package before anybody else imports it, and never returns: each target has a child.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from fuzzing.mutations import TEXT_MUTATIONS, mutated, step
from fuzzing.outcome import Tally
from fuzzing.target import Target

RESULT = "tally.json"
LONGEST = 20_000
READERS = [
    "dynid_ros.collision.obstacles",
    "dynid_ros.control",
    "dynid_ros.files",
    "dynid_ros.identified.identified_file",
    "dynid_ros.jobs.load",
    "dynid_ros.model.link_tree",
    "dynid_ros.model.urdf",
    "dynid_ros.model.urdf",
    "dynid_ros.recording",
    "dynid_ros.trajectories",
    "rosbags",
    "yaml",
]
"""What is watched."""


def main(seed: int, folder: Path, counts: dict[str, int]) -> None:
    """Fuzz one target after the other, leave the tally of each in a file, and say that it is there."""
    import atheris  # noqa: PLC0415

    with atheris.instrument_imports(include=READERS):
        from fuzzing import every  # noqa: PLC0415

    warnings.simplefilter("ignore")
    bags = folder / "bags"
    bags.mkdir()
    for i, target in enumerate(target for target in every.targets(bags)[0] if target.name in counts):
        work = folder / f"guided_{i}"
        work.mkdir()
        child = os.fork()
        if child == 0:
            _fuzz(atheris, target, counts[target.name], seed, work)
        os.waitpid(child, 0)
        print(target.name, work / RESULT, sep="\t", flush=True)


def _fuzz(atheris: Any, target: Target, count: int, seed: int, work: Path) -> NoReturn:
    """Ends the process."""
    files, corpus = work / "files", work / "corpus"
    for made in (files, corpus):
        made.mkdir()
    for i, content in enumerate(target.seeds):
        (corpus / f"seed_{i}").write_bytes(content)
    tally, kinds = Tally(), tuple(TEXT_MUTATIONS)

    def one(data: bytes) -> None:
        tally.add(lambda content: target.read(content, files), data)
        if tally.inputs % 100 == 0 or tally.inputs >= count:
            (work / RESULT).write_text(json.dumps(tally.document()))
        if tally.inputs >= count:
            os._exit(0)

    def mutate(data: bytes, size: int, number: int) -> bytes:
        # Half of them as this package knows its formats, half as libFuzzer does.
        if number % 2:
            return atheris.Mutate(data, size)
        steps = [step(number >> shift, kinds) for shift in range(1, 2 + number // 2 % 3)]
        return mutated(data, steps)[:size]

    with (work / "libfuzzer.txt").open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    limits = [f"-max_len={LONGEST}", "-timeout=120", "-rss_limit_mb=4096", "-len_control=0"]
    atheris.Setup([sys.argv[0], f"-seed={seed + 1}", *limits, str(corpus)], one, custom_mutator=mutate)
    atheris.Fuzz()
    os._exit(1)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        print(__doc__)
    else:
        main(int(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
