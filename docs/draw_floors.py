"""Write the floors of the package into docs/architecture.md, from pyproject.toml and the sources: `make docs`."""

import ast
import re
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "dynid_ros"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- floors: made by `make docs` -->", "<!-- end of floors -->"


def layers() -> list[list[str]]:
    """Return the rooms of each floor from the top down, from the contract of import-linter."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (floors,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [re.split(r" [|:] ", floor) for floor in floors]


def files(room: str) -> list[Path]:
    """Return the sources of a room, which is a folder or a file."""
    folder = PACKAGE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def purpose(room: str) -> str:
    """Return the first sentence of the docstring of a room."""
    path = PACKAGE / room / "__init__.py" if (PACKAGE / room).is_dir() else files(room)[0]
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split()).rstrip(".")


def imported(room: str) -> list[str]:
    """Return the rooms that a room imports, the topmost first, without imports for type checking."""
    found: set[str] = set()
    for path in files(room):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tree.body = [
            node for node in tree.body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        ]
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        found |= {name.split(".")[1] for name in modules if name.startswith("dynid_ros.")}
    return [name for floor in layers() for name in floor if name in found - {room}]


def drawing() -> str:
    """Return a table of the floors from the top down."""
    floors = layers()
    rows = ["| floor | room | what | imports |", "|---|---|---|---|"]
    for number, rooms in zip(range(len(floors), 0, -1), floors, strict=True):
        rows += [f"| {number} | `{room}` | {purpose(room)} | {', '.join(imported(room))} |" for room in rooms]
    return "\n".join(rows)


def page() -> str:
    """Return the whole page with the present floors."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{drawing()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
