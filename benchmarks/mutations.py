"""Small mistakes that a programmer makes, as replacements of one expression of a source."""

import ast
import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

WITHIN_ROUNDING = 1e-5
"""Numbers below guard against rounding; that one is moved a little is no mistake."""

INACTIVE = ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom
GUARDS = ("strict",)
"""Arguments that guard against mistakes of the programmer alone."""


class Mutation(NamedTuple):
    """One expression (or statement) of a source and what is put in its place."""

    node: ast.AST
    after: str

    @property
    def before(self) -> str:
        """The source of the expression."""
        return ast.unparse(self.node)

    def applied(self, source: str) -> str:
        """The whole source with it."""
        lines = source.encode().splitlines(keepends=True)
        first, last = self.node.lineno - 1, self.node.end_lineno - 1
        tail = lines[last][self.node.end_col_offset :]
        lines[first : last + 1] = [lines[first][: self.node.col_offset] + self.after.encode() + tail]
        return b"".join(lines).decode()


def mutations(source: str) -> dict[str, list[Mutation]]:
    """All of them by kind.

    Left out is what does not act: annotations, docstrings, the words of errors and other text.
    """
    found: dict[str, list[Mutation]] = {kind: [] for kind in KINDS}
    for node, in_index in _nodes(ast.parse(source)):
        for kind, make in KINDS.items():
            if kind in ("index", "number") and in_index != (kind == "index"):
                continue
            found[kind] += [Mutation(node, after) for after in make(node) if after != ast.unparse(node)]
    return found


def _nodes(node: ast.AST, in_index: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node that acts, and whether it is (part of) an index."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases") or getattr(node, "arg", None) in GUARDS:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(
                child, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom
            ):
                continue
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue
            inside = (in_index or (isinstance(node, ast.Subscript) and name == "slice")) and not isinstance(
                child, ast.Call
            )
            yield child, inside
            yield from _nodes(child, inside)


def _with(node: ast.AST, **changes: object) -> str:
    """Source of the node with other fields."""
    changed = copy.copy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return f"({ast.unparse(ast.fix_missing_locations(changed))})"


ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


def _operator(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not (_joins(node.left) or _joins(node.right)):
        yield _with(node, op=ARITHMETIC[type(node.op)]())


def _joins(node: ast.AST) -> bool:
    """Whether a sum with it is of text, lists or types."""
    text = isinstance(node, ast.Constant) and not isinstance(node.value, int | float)
    return text or isinstance(node, ast.JoinedStr | ast.List | ast.Dict | ast.Set | ast.Tuple)


OPPOSITE = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def _comparison(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield _with(node, ops=[OPPOSITE[type(node.ops[0])]()])


def _name(function: ast.AST) -> str:
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _side(node: ast.AST) -> Iterator[str]:
    """One side of a check or of a clamp forgotten: a <= x <= b, abs(x) > a, min(x, a), np.clip(x, a, b), x or y."""
    if isinstance(node, ast.Compare) and len(node.ops) == 2:
        yield _with(node, ops=node.ops[:1], comparators=node.comparators[:1])
        yield _with(node, left=node.comparators[0], ops=node.ops[1:], comparators=node.comparators[1:])
    if isinstance(node, ast.BoolOp):
        for i in range(len(node.values)):
            left = node.values[:i] + node.values[i + 1 :]
            yield f"({ast.unparse(left[0])})" if len(left) == 1 else _with(node, values=left)
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call) and _name(node.left.func) in ("abs", "fabs"):
        yield _with(node, left=node.left.args[0])
    if isinstance(node, ast.Call) and len(node.args) == 2 and _name(node.func) in ("min", "max", "minimum", "maximum"):
        for kept in node.args:
            if not isinstance(kept, ast.Starred):
                yield f"({ast.unparse(kept)})"
    if isinstance(node, ast.Call) and len(node.args) == 3 and _name(node.func) == "clip":
        value, lower, upper = map(ast.unparse, node.args)
        yield f"np.maximum({value}, {lower})"
        yield f"np.minimum({value}, {upper})"


def _check(node: ast.AST) -> Iterator[str]:
    """A check dropped: `if` before an error or an early end, or a call of a function that refuses."""
    if (
        isinstance(node, ast.If)
        and not node.orelse
        and isinstance(node.body[-1], ast.Raise | ast.Return | ast.Continue)
    ):
        yield _statement(node, test=ast.Constant(False))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "pass"


def _statement(node: ast.stmt, **changes: object) -> str:
    indent = " " * node.col_offset
    first, *further = _with(node, **changes)[1:-1].split("\n")
    return "\n".join([first, *(indent + line for line in further)])


def _number(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield str(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is float and not 0.0 < abs(node.value) < WITHIN_ROUNDING:
        yield repr(3.0 * node.value or 1.0)


def _index(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield str(node.value + 1)
        if node.value > 0:
            yield str(node.value - 1)


def _sign(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield f"({ast.unparse(node.operand)})"


def _boolean(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"({ast.unparse(node.operand)})"
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(not node.value)


KINDS: dict[str, Callable[[ast.AST], Iterator[str]]] = {
    "operator": _operator,
    "comparison": _comparison,
    "side": _side,
    "check": _check,
    "number": _number,
    "index": _index,
    "sign": _sign,
    "boolean": _boolean,
}
