"""Variables of a property: their ranges, the relations between them, and conditions on them.

    where:
      a0..a9: 0..9            a family: a0, a1, … a9
      s0..s9: 0..18
      b0..b9: s - a in 0..9   b0 is s0 - a0, and lies between 0 and 9
    conditions: ["a0 <= b0"]

Relations and conditions are linear.  A relation makes no variable of its own: b0 stands for the
form s0 - a0 wherever it is written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from byhand.errors import InputError, nearest
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _
from byhand.proving.domain import Values, Variable, Whole
from byhand.proving.reading.callables import FUNCTIONS
from byhand.proving.reading.scopes import TEXT

MOST_VALUES = 100_000  # of one variable
MOST_VARIABLES = 20_000
NAME = re.compile(r"[^\W\d]\w*")
_FAMILY = re.compile(r"([^\W\d]\w*?)([0-9]{1,5})\s*\.\.\s*([^\W\d]\w*?)([0-9]{1,5})")
_RANGE = re.compile(r"([-+]?[0-9]{1,15})\s*\.\.\s*([-+]?[0-9]{1,15})")
_INDEXED = re.compile(r"([^\W\d]\w*?)([0-9]+)")


@dataclass(frozen=True)
class Relation:
    """A name that stands for a linear form, and the ends that it must keep."""

    form: Whole
    ends: tuple[int, int] | None = None


@dataclass
class Variables:
    """All that `where` and `conditions` say; words are variables whose values are token ids."""

    values: dict[str, Values] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)
    relations: dict[str, Relation] = field(default_factory=dict)
    conditions: list[Whole] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """Variables and relations."""
        return (*self.values, *self.relations)

    def form(self, name: str) -> Whole | None:
        """What a name stands for, or None."""
        if name in self.values:
            return Whole(0, ((name, 1),))
        return self.relations[name].form if name in self.relations else None

    @property
    def families(self) -> dict[str, dict[int, str]]:
        """Stem → number → name: the variables a0, a1, … under a, unless that is one itself."""
        found: dict[str, dict[int, str]] = {}
        for name in self.names:
            if match := _INDEXED.fullmatch(name):
                found.setdefault(match[1], {})[int(match[2])] = name
        return {stem: members for stem, members in found.items() if stem not in self.names}

    def listed(self) -> tuple[Variable, ...]:
        """The variables with their values."""
        return tuple(Variable(name, values) for name, values in self.values.items())


Tokens = Callable[[Node], tuple[tuple[int, ...], bool] | None]  # values, whether they are words


def read_where(node: Node | None, tokens: Tokens, found: Variables) -> None:
    """Adds the variables of a table; `tokens` reads sets of tokens and names of groups."""
    if node is None:
        return
    if not isinstance(node, Table):
        raise node.wrong(_("where is a table"), expected="a: 0..9")
    later: list[tuple[str, int | None, Scalar]] = []  # relations, once all variables are known
    for key, value in node.entries.items():
        for name, index in _names(key, value):
            if name in found.names or any(name == one for one, _i, _n in later):
                message = _("the name {name} is given twice").format(name=repr(name))
                raise value.wrong(message, found=name)
            if len(found.values) + len(later) > MOST_VARIABLES:
                raise value.wrong(
                    _("too many variables"),
                    expected=_("at most {count}").format(count=f"{MOST_VARIABLES:,}"),
                )
            said = _values(value, tokens)
            if said is None:
                assert isinstance(value, Scalar)
                later.append((name, index, value))
            else:
                found.values[name] = said[0]
                if said[1]:
                    found.words.add(name)
    _relate(later, found)


def _names(key: str, node: Node) -> Iterable[tuple[str, int | None]]:
    """The names of a key: a, or a0..a9, or several with commas; with the number of each."""
    for part in key.split(","):
        written = part.strip()
        match = _FAMILY.fullmatch(written)
        if match and match[1] == match[3]:
            first, last = int(match[2]), int(match[4])
            step = 1 if last >= first else -1
            for index in range(first, last + step, step):
                yield checked(f"{match[1]}{index}", node), index
        elif NAME.fullmatch(written):
            yield checked(written, node), None
        else:
            raise node.wrong(
                _("this is no name of a variable"),
                expected="a, a0..a9",
                found=written or _("nothing"),
            )


def checked(name: str, node: Node) -> str:
    """The name of a variable, which must not be the name of anything else."""
    if name in FUNCTIONS or name == TEXT or name.startswith("__") or not _usable(name):
        raise node.wrong(
            _("a variable cannot be called {name}").format(name=repr(name)),
            expected=_("another name"),
            found=name,
        )
    return name


def _usable(name: str) -> bool:
    """Whether Python takes the name for a name: `if` and `in` are none."""
    try:
        return isinstance(ast.parse(name, mode="eval").body, ast.Name)
    except SyntaxError:
        return False


def _values(node: Node, tokens: Tokens) -> tuple[Values, bool] | None:
    """The values of a range or a list; None for a relation."""
    if isinstance(node, Scalar):
        if not node.text.strip():
            raise node.wrong(
                _("a variable has no values"),
                expected="0..9",
                hint=_("inside braces, several names are written in quotes: {'a, b': 0..9}"),
            )
        if match := _RANGE.fullmatch(node.text.strip()):
            return _between(int(match[1]), int(match[2]), node), False
    elif isinstance(node, List) and node.items:
        numbers = [_number(item) for item in node.items]
        if all(number is not None for number in numbers):
            return tuple(sorted({number for number in numbers if number is not None})), False
    elif not isinstance(node, List):
        raise node.impossible("0..9, [0, 2, 4], s - a")
    read = tokens(node)
    if read is None and not isinstance(node, Scalar):
        raise node.impossible("0..9, [0, 2, 4], s - a")
    return read


def _number(node: Node) -> int | None:
    text = node.text.strip() if isinstance(node, Scalar) else ""
    return int(text) if re.fullmatch(r"[-+]?[0-9]{1,15}", text) else None


def _between(low: int, high: int, node: Node) -> Values:
    if low > high:
        raise node.wrong(
            _("a range goes from the smaller to the larger number"), expected=f"{high}..{low}"
        )
    if high - low >= MOST_VALUES:
        raise node.wrong(
            _("a variable has too many values"),
            expected=_("at most {count}").format(count=f"{MOST_VALUES:,}"),
            hint=_("write a long number as several variables, one for each digit"),
        )
    return tuple(range(low, high + 1))


# --------------------------------------------------------------------------- relations


def _relate(later: list[tuple[str, int | None, Scalar]], found: Variables) -> None:
    """Adds the relations, each after those that it is written with."""
    todo = list(later)
    while todo:
        left: list[tuple[str, int | None, Scalar]] = []
        waiting = {name for name, _index, _node in todo}
        for name, index, node in todo:
            written, inside, ends = node.text.partition(" in ")
            limits = _RANGE.fullmatch(ends.strip()) if inside else None
            if inside and limits is None:
                raise node.impossible("s - a in 0..9")
            used = [_meant(one, index, waiting, found) for one in names_in(written, node)]
            if any(one in waiting for one in used):
                left.append((name, index, node))
                continue

            def stands_for(one: str, index: int | None = index, node: Scalar = node) -> Whole:
                return _form(_meant(one, index, (), found), found, node)

            form = linear(written, stands_for, node)
            between = (int(limits[1]), int(limits[2])) if limits else None
            found.relations[name] = Relation(form, between)
        if len(left) == len(todo):
            name, _index, node = left[0]
            raise node.wrong(
                _("relations run in a circle"), found=" → ".join(one for one, _i, _n in left[:4])
            )
        todo = left


def _meant(name: str, index: int | None, waiting: Iterable[str], found: Variables) -> str:
    """The variable that a name means in the relation of one member: s is s3 in that of b3."""
    if index is None or name in found.names or name in waiting:
        return name
    return f"{name}{index}"


def _form(name: str, found: Variables, node: Node) -> Whole:
    form = found.form(name)
    if form is None:
        raise unknown(name, found.names, node)
    if name in found.words:
        raise node.wrong(
            _("{name} stands for words, not for numbers").format(name=repr(name)), found=name
        )
    return form


def unknown(name: str, names: Iterable[str], node: Node | None = None) -> InputError:
    """The error for a name that is no variable."""
    known = list(names)
    facts = {
        "expected": ", ".join(known[:20]) or _("where: {a: 0..9}"),
        "found": name,
        "hint": nearest(name, known),
    }
    message = _("there is no variable {name} here").format(name=repr(name))
    return node.wrong(message, **facts) if node else InputError(message, **facts)


# --------------------------------------------------------------------------- conditions


def read_conditions(node: Node | None, found: Variables) -> None:
    """Adds linear conditions such as a <= b; of families, one for each member."""
    if node is None:
        return
    for item in node.items if isinstance(node, List) else (node,):
        if not isinstance(item, Scalar):
            raise item.impossible("a <= b")
        stems = [n for n in names_in(item.text, item) if n in found.families]
        if not stems:
            found.conditions.extend(_compared(item, None, found))
            continue
        first, *rest = (set(found.families[stem]) for stem in stems)
        if any(other != first for other in rest):
            raise item.wrong(_("the families have different members"), expected=", ".join(stems))
        for index in sorted(first):
            found.conditions.extend(_compared(item, index, found))


def _compared(node: Scalar, index: int | None, found: Variables) -> list[Whole]:
    tree = _tree(node.text, node)
    if not isinstance(tree, ast.Compare):
        raise node.wrong(_("a condition is a comparison"), expected="a <= b, a + b == 9")

    def side(one: ast.expr) -> Whole:
        def stands_for(name: str) -> Whole:
            own = index is not None and name in found.families
            return _form(f"{name}{index}" if own else name, found, node)

        return _form_of(one, stands_for, node)

    sides = [side(one) for one in (tree.left, *tree.comparators)]
    conditions: list[Whole] = []
    for op, one, two in zip(tree.ops, sides, sides[1:], strict=False):
        up, down = combined(two, one, -1), combined(one, two, -1)  # two - one, one - two
        match op:
            case ast.LtE():
                conditions.append(up)
            case ast.Lt():
                conditions.append(Whole(up.constant - 1, up.factors))
            case ast.GtE():
                conditions.append(down)
            case ast.Gt():
                conditions.append(Whole(down.constant - 1, down.factors))
            case ast.Eq():
                conditions += [up, down]
            case _:
                raise node.wrong(
                    _("this comparison is not possible here"), expected="<=, <, >=, >, =="
                )
    return conditions


# --------------------------------------------------------------------------- linear forms


def names_in(text: str, node: Node | None) -> list[str]:
    """The names that an expression is written with, those with an index as a[0]."""
    found: list[str] = []
    todo: list[ast.AST] = [_tree(text, node)]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Subscript):
            found.append(ast.unparse(one))
        elif isinstance(one, ast.Name):
            found.append(one.id)
        else:
            todo.extend(ast.iter_child_nodes(one))
    return list(dict.fromkeys(found[::-1]))


def linear(text: str, stands_for: Callable[[str], Whole], node: Node | None = None) -> Whole:
    """The linear form that an expression writes down."""
    return _form_of(_tree(text, node), stands_for, node)


def _tree(text: str, node: Node | None) -> ast.expr:
    try:
        if len(text) < 2_000:
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    _not_linear(text, node)


def _not_linear(found: str, node: Node | None) -> NoReturn:
    message = _("this is not linear in variables")
    facts = {"expected": "s - a, 2*a + 1", "found": found.strip()[:60] or _("nothing")}
    raise node.wrong(message, **facts) if node else InputError(message, **facts)


def _form_of(tree: ast.expr, stands_for: Callable[[str], Whole], node: Node | None) -> Whole:
    try:
        return _linear(tree, stands_for, node)
    except RecursionError:
        _not_linear(_("something nested too deeply"), node)


def _linear(tree: ast.expr, stands_for: Callable[[str], Whole], node: Node | None) -> Whole:
    match tree:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() as number):
            return Whole(number)
        case ast.Name(id=name):
            return stands_for(name)
        case ast.Subscript():
            return stands_for(ast.unparse(tree))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return combined(Whole(), _linear(inner, stands_for, node), -1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign = 1 if isinstance(op, ast.Add) else -1
            one, two = (_linear(side, stands_for, node) for side in (left, right))
            return combined(one, two, sign)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, two = (_linear(side, stands_for, node) for side in (left, right))
            if not one.factors or not two.factors:
                factor, form = (one, two) if not one.factors else (two, one)
                return combined(Whole(), form, factor.constant)
    _not_linear(ast.unparse(tree), node)


def combined(one: Whole, two: Whole, times: int) -> Whole:
    """one + times · two."""
    factors = dict(one.factors)
    for name, factor in two.factors:
        factors[name] = factors.get(name, 0) + times * factor
    kept: Mapping[str, int] = {name: factor for name, factor in factors.items() if factor}
    return Whole(one.constant + times * two.constant, tuple(kept.items()))
