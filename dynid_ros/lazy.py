"""Package faces that import a module when one of its names is first used (PEP 562)."""

import ast
from importlib import import_module
from typing import Any


def offer(face: dict[str, Any]) -> None:
    """Offer the names that a package's `__init__` imports under `if TYPE_CHECKING:`, which editors and mypy read too.

    A name is imported as itself ("import Motion as Motion"), which marks it as public for type checkers (PEP 484).

    No offered name may equal a file name in the package: Python would replace it by the module at its import.

    Args:
        face: `globals()` of the `__init__`.
    """
    places: dict[str, str] = {}

    def get(name: str) -> Any:
        if not places:
            places.update(_modules_by_name(face["__loader__"].get_source(face["__name__"])))
        if name == "__all__":
            return sorted(places)
        if name not in places:
            raise AttributeError(f"module {face['__name__']!r} has no attribute {name!r}")
        face[name] = getattr(import_module(places[name]), name)
        return face[name]

    face["__getattr__"] = get
    face["__dir__"] = lambda: sorted({*(name for name in face if name.startswith("__")), "__all__", *get("__all__")})


def _modules_by_name(source: str) -> dict[str, str]:
    """Return the module of each name that a face imports for type checking."""
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}
