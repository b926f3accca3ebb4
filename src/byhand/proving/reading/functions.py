"""Functions that properties give: expressions and files in a small, safe part of Python.

The text is parsed, and every piece of it must be one that is listed here: arithmetic with whole
numbers, comparisons, conditions, indexing, comprehensions, a few functions and methods; in files
also definitions, assignments and loops.  Nothing else can be reached: no attribute, no import, no
float.  So a function from a stranger's certificate can be run.  It is compiled once.  The same code
works on single texts and, with `wholes.Range` and `wholes.Words`, on regions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from byhand.errors import InputError, nearest
from byhand.language import _
from byhand.proving.domain import Reckoned, Varies
from byhand.proving.reading.callables import FUNCTIONS, GUARDED, frozen
from byhand.proving.reading.safe_python import check, hint_for, refused
from byhand.proving.reading.words import one_of

LONGEST = 20_000  # characters of an expression or a file
MOST_ROUNDS = 1_000_000  # of all loops, for one text

ENTRY = "answer"  # the function of a file that is called


# --------------------------------------------------------------------------- compiled


@dataclass(frozen=True, slots=True)
class Compiled:
    """A function, ready to be called with the values of `names` in their order."""

    call: Callable[..., Any]
    names: tuple[str, ...]


def compile_expression(text: str, known: Collection[str]) -> Compiled:
    """The function of some variables that an expression writes down."""
    return _compiled(text, frozenset(known))


@lru_cache(maxsize=64)
def _compiled(text: str, known: frozenset[str]) -> Compiled:
    tree = _parsed(text.strip(), "eval")
    assert isinstance(tree, ast.Expression)
    bound = _bound(tree)
    names = tuple(
        dict.fromkeys(
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id in known and node.id not in bound
        )
    )
    checked = check(tree, {*known, *bound, *FUNCTIONS}, in_file=False)
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    outer = ast.Expression(ast.Lambda(arguments, checked.body))
    code = compile(ast.fix_missing_locations(outer), "<property>", "eval")
    return Compiled(eval(code, _surroundings(_Rounds())), names)


def compile_file(text: str, known: Collection[str]) -> Compiled:
    """The function `answer` of a file; its arguments are variables, by name."""
    tree = _parsed(text, "exec")
    assert isinstance(tree, ast.Module)
    tree.body = [
        one
        for one in tree.body
        if not (isinstance(one, ast.ImportFrom) and one.module == "__future__")
    ]
    for one in tree.body:
        plain = isinstance(one, ast.FunctionDef | ast.Assign | ast.AnnAssign)
        if not plain and not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)):
            raise refused(one, _("this part of Python is not possible here"), hint_for(one))
    entry = next((d for d in tree.body if isinstance(d, ast.FunctionDef) and d.name == ENTRY), None)
    if entry is None:
        raise InputError(
            _("the file has no function {name}").format(name=ENTRY),
            expected=f"def {ENTRY}({', '.join(list(known)[:4])}): …",
        )
    names = _arguments(entry, known)
    check(tree, {*_bound(tree), *FUNCTIONS}, in_file=True)
    rounds = _Rounds()
    space = _surroundings(rounds)
    code = compile(ast.fix_missing_locations(tree), "<property>", "exec")
    try:
        exec(code, space)
    except (ArithmeticError, LookupError, TypeError, ValueError, NameError) as error:
        raise InputError(_("the file cannot be run"), found=str(error)) from None
    for name in _bound(tree).intersection(space):
        space[name] = frozen(space[name], name)
    function = space[ENTRY]

    def call(*values: Any) -> Any:
        rounds.left = MOST_ROUNDS
        return function(*values)

    return Compiled(call, names)


def _arguments(entry: ast.FunctionDef, known: Collection[str]) -> tuple[str, ...]:
    given = entry.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
        raise refused(entry, _("the arguments of {name} are variables").format(name=ENTRY))
    names = tuple(one.arg for one in given.args)
    for name in names:
        if name not in known:
            raise InputError(
                _("there is no variable {name} here").format(name=repr(name)),
                where=f":{entry.lineno}",
                expected=", ".join(known),
                found=name,
                hint=nearest(name, known),
            )
    return names


def _parsed(text: str, mode: str) -> ast.AST:
    if len(text) > LONGEST:
        raise InputError(
            _("the function is too long"),
            expected=_("at most {count} characters").format(count=f"{LONGEST:,}"),
            found=f"{len(text):,}",
        )
    try:
        return ast.parse(text, mode=mode)
    except SyntaxError as error:
        line = f":{error.lineno}" if mode == "exec" and error.lineno else ""
        raise InputError(
            _("this is not Python: {problem}").format(problem=error.msg),
            where=line,
            found=(error.text or text).strip()[:60],
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(_("this is not Python: {problem}").format(problem=error)) from None


def _bound(tree: ast.AST) -> set[str]:
    """The names that the text itself gives a value to."""
    found = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    found |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return found | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


class _Rounds:
    """How many rounds of loops are left."""

    def __init__(self) -> None:
        self.left = MOST_ROUNDS

    def tick(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise InputError(
                _("the function does not come to an end"),
                expected=_("at most {count} rounds").format(count=f"{MOST_ROUNDS:,}"),
            )


def _surroundings(rounds: _Rounds) -> dict[str, Any]:
    """All that the compiled code can reach."""
    guarded = {**GUARDED, "*in": one_of, "*tick": rounds.tick}
    return {"__builtins__": {}, **FUNCTIONS, **guarded}


def without_value(error: Exception, values: Mapping[str, Any]) -> InputError | Varies:
    """What an error inside a function means: over a region, that it varies; else a mistake."""
    if any(isinstance(value, Reckoned) for value in values.values()):
        free = [name for name, value in values.items() if isinstance(value, Reckoned)]
        return Varies(*free)
    shown = ", ".join(f"{name} = {value}" for name, value in list(values.items())[:12])
    reason = f"{type(error).__name__}: {error}"
    return InputError(
        _("the function has no value where {values}").format(values=shown), found=reason[:200]
    )
