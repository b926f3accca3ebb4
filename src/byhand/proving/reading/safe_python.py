"""The small part of Python that functions of properties are written in, and the check of it.

Every piece of the text must be one that is listed here.  A few are replaced by guarded calls:
powers and products are bounded, loops are counted, methods are those of a list.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from byhand.errors import InputError, nearest
from byhand.language import _
from byhand.proving.reading.callables import FUNCTIONS

METHODS = (
    "append", "count", "endswith", "extend", "find", "get", "index", "insert", "isalpha", "isdigit",
    "items", "join", "keys", "lower", "pop", "replace", "reverse", "sort", "split", "startswith",
    "strip", "upper", "values",
)  # fmt: skip

_EVERYWHERE: tuple[type[ast.AST], ...] = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.BinOp, ast.Add, ast.Sub, ast.Mult,
    ast.FloorDiv, ast.Mod, ast.Pow, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.IfExp,
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.Call, ast.keyword, ast.Constant, ast.Name, ast.Load, ast.Store, ast.Subscript,
    ast.Slice, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.comprehension, ast.Lambda, ast.arguments, ast.arg, ast.Starred,
)  # fmt: skip
_IN_FILES: tuple[type[ast.AST], ...] = (
    ast.Module, ast.FunctionDef, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If,
    ast.For, ast.While, ast.Break, ast.Continue, ast.Pass, ast.Expr,
)  # fmt: skip


def refused(node: ast.AST, message: str, hint: str | None = None) -> InputError:
    """The error for a piece that is not possible; `where` is its line, behind a colon."""
    shown = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else type(node).__name__
    number = getattr(node, "lineno", 0)
    line = f":{number}" if number else ""
    return InputError(message, where=line, found=shown.partition("\n")[0][:60], hint=hint)


class _Checked(ast.NodeTransformer):
    """Refuses every piece that is not listed, and puts guarded calls in the place of a few."""

    def __init__(self, known: Collection[str], in_file: bool) -> None:
        self.known = known
        self.in_file = in_file
        self.allowed = (*_EVERYWHERE, *_IN_FILES) if in_file else _EVERYWHERE

    def visit(self, node: ast.AST) -> Any:
        """The node, rewritten; an InputError where it is none of those allowed."""
        if not isinstance(node, self.allowed):
            raise refused(node, _("this part of Python is not possible here"), hint_for(node))
        return super().visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, bool | int | str | type(None)):
            raise refused(node, _("only whole numbers and texts are possible here"))
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id.startswith("__"):
            raise refused(node, _("a name cannot begin with two underscores"))
        if isinstance(node.ctx, ast.Load) and node.id not in self.known:
            raise InputError(
                _("there is no variable {name} here").format(name=repr(node.id)),
                expected=", ".join(sorted(set(self.known) - set(FUNCTIONS))) or _("no name"),
                found=node.id,
                hint=nearest(node.id, self.known),
            )
        if isinstance(node.ctx, ast.Store) and node.id in FUNCTIONS:
            raise refused(node, _("this name is that of a function"))
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        if node.arg.startswith("__"):
            raise refused(node, _("a name cannot begin with two underscores"))
        return ast.copy_location(ast.arg(node.arg), node)  # without its annotation

    def visit_Call(self, node: ast.Call) -> Any:
        arguments = [self.visit(one) for one in node.args]
        named = [self.visit(one) for one in node.keywords]
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name not in METHODS:
                hint = nearest(name, METHODS)
                raise refused(node, _("this method is not possible here"), hint)
            on = self.visit(node.func.value)
            return _call("*method", node, on, ast.Constant(name), *arguments, named=named)
        if not isinstance(node.func, ast.Name):
            raise refused(node, _("only functions with a name can be called"))
        return ast.copy_location(ast.Call(self.visit(node.func), arguments, named), node)

    def visit_keyword(self, node: ast.keyword) -> Any:
        if node.arg is None or node.arg.startswith("__"):
            raise refused(node, _("this part of Python is not possible here"))
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if not isinstance(node.op, self.allowed):
            raise refused(node, _("this part of Python is not possible here"), hint_for(node.op))
        left, right = self.visit(node.left), self.visit(node.right)
        guarded = {ast.Mult: "*times", ast.Pow: "*power"}
        if self.in_file:
            guarded[ast.Add] = "*plus"
        name = guarded.get(type(node.op))
        if name:
            return _call(name, node, left, right)
        if isinstance(node.op, ast.Mod) and isinstance(getattr(left, "value", None), str):
            raise refused(node, _("this part of Python is not possible here"))
        return ast.copy_location(ast.BinOp(left, node.op, right), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if not isinstance(node.target, ast.Name):
            raise refused(node, _("this part of Python is not possible here"))
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        if read.id not in self.known:
            self.visit_Name(read)
        sum = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        return ast.copy_location(ast.Assign([self.visit(node.target)], self.visit(sum)), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Compare(self, node: ast.Compare) -> Any:
        if not any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            return self.generic_visit(node)
        if len(node.ops) > 1:
            raise refused(node, _("`in` cannot stand in a chain of comparisons"))
        found = _call("*in", node, self.visit(node.left), self.visit(node.comparators[0]))
        if isinstance(node.ops[0], ast.NotIn):
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
        return found

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        named = node.name in FUNCTIONS or node.name.startswith("__")
        if node.decorator_list or named or not _plain(node.args):
            raise refused(node, _("a function cannot be defined like this"))
        node.returns = None
        return self._with_tick(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        if not _plain(node.args):
            raise refused(node, _("a function cannot be defined like this"))
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> Any:
        return self._with_tick(node)

    def visit_While(self, node: ast.While) -> Any:
        return self._with_tick(node)

    def _with_tick(self, node: Any) -> Any:
        """The loop or function, which counts its rounds so that it ends."""
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(_call("*tick", node)), node))
        return node


def _plain(arguments: ast.arguments) -> bool:
    """Whether what arguments are unless given is no list, which calls could share and change."""
    usual = [*arguments.defaults, *(one for one in arguments.kw_defaults if one)]
    return all(isinstance(one, ast.Constant) for one in usual)


def hint_for(node: ast.AST) -> str | None:
    """What to write instead of a piece."""
    if isinstance(node, ast.Div):
        return _("whole numbers are divided with //")
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _("these functions are there: {names}").format(names=", ".join(FUNCTIONS))
    return None


def _call(name: str, node: Any, *arguments: Any, named: list[Any] | None = None) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), node)
    call = ast.Call(function, [ast.copy_location(one, node) for one in arguments], named or [])
    return ast.copy_location(call, node)


def check(tree: ast.AST, known: Collection[str], in_file: bool) -> Any:
    """The tree with guarded calls; an InputError where it holds anything that is not listed."""
    try:
        return _Checked(known, in_file).visit(tree)
    except RecursionError:
        raise InputError(_("the function is nested too deeply")) from None
