"""Extract links, commands and quotations of code from the pages of the documentation."""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted(set((ROOT / "docs").glob("*.md")) - {ROOT / "docs/index.md"})]
FENCE = re.compile(r"^[ \d.]*```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
PACKAGE = ROOT / "dynid_ros"
SOURCE_SUFFIXES = (".py", ".yaml", ".rviz", ".cpp", ".j2")
FILE_SUFFIXES = (".csv", ".html", ".json", ".md", ".npz", ".py", ".sdf", ".urdf", ".xml", ".yaml")
PROGRAMS = ("dynid", "ros2", "make", "python")


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """Return the text without blocks of code."""
    return FENCE.sub("", text(page))


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """Return the anchors of headings as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def words_of(command: str) -> list[str]:
    """Return the words of a shell line up to a pipe; a command substitution is one word."""
    words = shlex.split(re.sub(r"\$\([^)]*\)", "$", command), comments=True)
    return list(takewhile(lambda word: word != "|" and ">/" not in word, words))


def block_commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each complete command in blocks without a language."""
    for language, block in FENCE.findall(text(page)):
        if language in ("", "sh", "bash"):
            for line in block.replace("\\\n", " ").splitlines():
                words = words_of(line.strip())
                if words and words[0] in PROGRAMS:
                    yield words


def inline_commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each command within text, which may lack arguments."""
    for code in INLINE.findall(prose(page)):
        words = code.split()
        if len(words) > 1 and words[0] in PROGRAMS:
            yield [word.strip("[]") for word in words if word.strip("[]…")]


def python_imports(page: Path) -> list[str]:
    """Return the import lines of Python blocks."""
    blocks = [block for language, block in FENCE.findall(text(page)) if language == "python"]
    return [line for block in blocks for line in re.findall(r"^(?:from|import) .*$", block, re.MULTILINE)]


def inline_names(page: Path) -> set[str]:
    """Return modules, paths of this repository, and names with underscores, within text."""
    rooms = {path.stem for path in (ROOT / "dynid_ros").glob("[a-z]*")}
    folders = {"benchmarks", "config", "docs", "dynid_ros", "examples", "launch", "test", *rooms}
    names = set()
    for code in INLINE.findall(prose(page)):
        is_path = re.fullmatch(r"([\w.]+)/[\w./]+", code)
        is_module = re.fullmatch(r"([a-z_]+)(\.\w+)+", code) and not code.endswith(FILE_SUFFIXES)
        if (
            (is_path and is_path[1] in folders)
            or (is_module and code.partition(".")[0] in {"dynid_ros", *rooms})
            or re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", code)
        ):
            names.add(code)
    return names


def exists(name: str) -> bool:
    """Return whether a file, a module attribute, or a word of the sources has the name."""
    if "/" in name:
        return any(next(folder.glob(name.rstrip("/") + end), None) for folder in (ROOT, PACKAGE) for end in ("", ".py"))
    if "." in name:
        parts = name.removeprefix("dynid_ros.").split(".")
        return any(_is_in_module(parts[:k], parts[k:]) for k in range(len(parts) + 1))
    return name in words_of_sources()


def _is_in_module(module: list[str], attributes: list[str]) -> bool:
    path = PACKAGE.joinpath(*module)
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.is_file():
        return False
    value = importlib.import_module(".".join(["dynid_ros", *module]))
    for attribute in attributes:
        if not hasattr(value, attribute):
            return False
        value = getattr(value, attribute)
    return True


@cache
def words_of_sources() -> frozenset[str]:
    """Return all words of the code, the parameter files and the names of files."""
    folders = ("benchmarks", "config", "docs", "dynid_ros", "examples", "launch", "test")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in SOURCE_SUFFIXES]
    texts = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
    return frozenset(re.findall(r"\w+", texts)) | {path.stem for path in files}


def quotations(page: Path) -> list[str]:
    """Return texts in double quotes outside code."""
    return re.findall(r'"([^"\n]{8,})"', re.sub(r"`[^`\n]*`", "", prose(page)))


@cache
def messages() -> tuple[str, ...]:
    """Return all strings of the package, with … for replacement fields."""
    found = []
    for path in sorted((ROOT / "dynid_ros").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return tuple(found)


def is_said(quotation: str) -> bool:
    """Return whether a message of the code contains the parts of `quotation` between … in this order."""
    parts = [part.strip() for part in quotation.split("…")]
    return any(in_order(parts, message) for message in messages())


def in_order(parts: list[str], message: str) -> bool:
    start = 0
    for part in parts:
        found = message.find(part, start)
        if found < 0:
            return False
        start = found + len(part)
    return True
