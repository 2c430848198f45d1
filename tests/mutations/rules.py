"""Small mistakes as changes of syntax trees: one function for each rule.

A rule looks at one node and returns the nodes that could stand there by mistake. `mutants` applies
a rule to every node of a definition, in the order of the source. So a mutation is named by a
definition, a rule and a position, and rewording the code around it does not matter.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

Rule = Callable[[ast.AST], list[ast.AST]]

_BOUNDS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_EQUALITIES = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_DIRECTIONS = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
               ast.Div: ast.Mult}  # fmt: skip
_PAIRS = (("min", "max"), ("any", "all"), ("minimum", "maximum"), ("argmin", "argmax"),
          ("floor", "ceil"), ("bisect_left", "bisect_right"))  # fmt: skip
_OPPOSITES = {**dict(_PAIRS), **{right: left for left, right in _PAIRS}}


def _compared(table: dict[type[ast.cmpop], type[ast.cmpop]]) -> Rule:
    def changed(node: ast.AST) -> list[ast.AST]:
        if not isinstance(node, ast.Compare):
            return []
        found: list[ast.AST] = []
        for index, operator in enumerate(node.ops):
            if (other := table.get(type(operator))) is not None:
                operators = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                found.append(ast.Compare(node.left, operators, node.comparators))
        return found

    return changed


def arithmetic(node: ast.AST) -> list[ast.AST]:
    """`a + b` becomes `a - b`, `a * b` becomes `a // b`, and the other way round."""
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return [ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)]
    return []


def sign(node: ast.AST) -> list[ast.AST]:
    """`-a` becomes `a`, `not a` becomes `a`."""
    return [node.operand] if isinstance(node, ast.UnaryOp) else []


def minus(node: ast.AST) -> list[ast.AST]:
    """An element of a tuple gets a minus: an order is turned round."""
    if not isinstance(node, ast.Tuple) or not isinstance(node.ctx, ast.Load):
        return []
    return [
        ast.Tuple(
            [*node.elts[:i], ast.UnaryOp(ast.USub(), element), *node.elts[i + 1 :]], ast.Load()
        )
        for i, element in enumerate(node.elts)
        if isinstance(element, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.BinOp)
    ]


def side(node: ast.AST) -> list[ast.AST]:
    """Only one operand of `a + b`, `a and b`, ... is left."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    return list(node.values) if isinstance(node, ast.BoolOp) else []


def condition(node: ast.AST) -> list[ast.AST]:
    """The condition of an `if` always holds, or never."""
    if not isinstance(node, ast.If | ast.IfExp):
        return []
    found: list[ast.AST] = []
    for value in (True, False):
        other = copy.copy(node)
        other.test = ast.Constant(value)
        found.append(other)
    return found


def chosen(node: ast.AST) -> list[ast.AST]:
    """A comprehension forgets a filter."""
    if not isinstance(node, ast.comprehension):
        return []
    return [
        ast.comprehension(
            node.target, node.iter, [*node.ifs[:i], *node.ifs[i + 1 :]], node.is_async
        )
        for i in range(len(node.ifs))
    ]


def opposite(node: ast.AST) -> list[ast.AST]:
    """`min` becomes `max`, `any` becomes `all`, ..."""
    if isinstance(node, ast.Name) and node.id in _OPPOSITES:
        return [ast.Name(_OPPOSITES[node.id], node.ctx)]
    if isinstance(node, ast.Attribute) and node.attr in _OPPOSITES:
        return [ast.Attribute(node.value, _OPPOSITES[node.attr], node.ctx)]
    return []


def argument(node: ast.AST) -> list[ast.AST]:
    """A call is replaced by one of its arguments."""
    if not isinstance(node, ast.Call):
        return []
    return [value for value in node.args if not isinstance(value, ast.Starred)]


def empty(node: ast.AST) -> list[ast.AST]:
    """A call gets `()` for one of its arguments, as where none are named, so that all count."""
    if not isinstance(node, ast.Call):
        return []
    nothing = ast.Tuple([], ast.Load())
    return [
        ast.Call(node.func, [*node.args[:i], nothing, *node.args[i + 1 :]], node.keywords)
        for i in range(len(node.args))
    ]


def forgotten(node: ast.AST) -> list[ast.AST]:
    """A call lacks one of its arguments."""
    if not isinstance(node, ast.Call):
        return []
    words = [
        ast.Call(node.func, node.args, [*node.keywords[:i], *node.keywords[i + 1 :]])
        for i in range(len(node.keywords))
    ]
    if len(node.args) < 2:
        return list(words)
    return [*words, ast.Call(node.func, node.args[:-1], node.keywords)]


def element(node: ast.AST) -> list[ast.AST]:
    """A tuple, a list or a set lacks one of its elements."""
    if not isinstance(node, ast.Tuple | ast.List | ast.Set):
        return []
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return []
    found: list[ast.AST] = []
    for index in range(len(node.elts)):
        other = copy.copy(node)
        other.elts = [*node.elts[:index], *node.elts[index + 1 :]]
        found.append(other)
    return found


def number(node: ast.AST) -> list[ast.AST]:
    """A number is one larger, or twice as large."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return [ast.Constant(node.value + 1), ast.Constant(node.value * 2)]
    return []


def statement(node: ast.AST) -> list[ast.AST]:
    """A statement is missing."""
    dropped = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Delete, ast.Continue)
    if not isinstance(node, dropped) or _is_docstring(node):
        return []
    return [ast.Pass()]


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


RULES: dict[str, Rule] = {
    "bound": _compared(_BOUNDS),
    "equality": _compared(_EQUALITIES),
    "direction": _compared(_DIRECTIONS),
    "arithmetic": arithmetic,
    "sign": sign,
    "minus": minus,
    "side": side,
    "condition": condition,
    "chosen": chosen,
    "opposite": opposite,
    "argument": argument,
    "empty": empty,
    "forgotten": forgotten,
    "element": element,
    "number": number,
    "statement": statement,
}


def mutants(text: str, name: str, rule: str) -> Iterator[str]:
    """The module's source with one mistake of a rule inside a definition, for each position.

    `name` is a function, a class or an assigned name, with its class before it, e.g.
    `Queue.push`.

    Raises:
        LookupError: the module has no such definition.
    """
    tree = ast.parse(text)
    for path in _paths(_definition(tree, name.split("."))):
        for index in range(len(RULES[rule](_at(_definition(tree, name.split(".")), path)))):
            changed = ast.parse(text)
            definition = _definition(changed, name.split("."))
            _replace(definition, path, RULES[rule](_at(definition, path))[index])
            yield ast.unparse(ast.fix_missing_locations(changed))


def _definition(tree: ast.AST, names: list[str]) -> ast.AST:
    for name in names:
        tree = next((node for node in ast.walk(tree) if name in _names(node)), ast.Pass())
    if isinstance(tree, ast.Pass):
        raise LookupError(f"nothing is called {'.'.join(names)}")
    return tree


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [part.id for target in node.targets for part in ast.walk(target)
                if isinstance(part, ast.Name)]  # fmt: skip
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


_Path = tuple[tuple[str, int | None], ...]


def _paths(node: ast.AST, path: _Path = ()) -> Iterator[_Path]:
    """The ways from a definition to all nodes inside it, in the order of the source."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        children = value if isinstance(value, list) else [value]
        for index, child in enumerate(children):
            if isinstance(child, ast.AST):
                step = (field, index if isinstance(value, list) else None)
                yield (*path, step)
                yield from _paths(child, (*path, step))


def _at(node: ast.AST, path: _Path) -> ast.AST:
    for field, index in path:
        value = getattr(node, field)
        node = value if index is None else value[index]
    return node


def _replace(node: ast.AST, path: _Path, new: ast.AST) -> None:
    parent, (field, index) = _at(node, path[:-1]), path[-1]
    if index is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[index] = new
