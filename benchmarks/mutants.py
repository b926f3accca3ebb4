"""Mutants of the rules of learning: each is one small mistake, and the tests must notice it.

`python -m benchmarks.mutants` makes every mistake of `CHANGES` at every place of `backward`,
`reverse_sheet` and `optimizer`, one at a time, and runs their tests on each in a process of its own
until one fails.  `--sample N` takes every Nth.  It ends with status 1 if a mutant lives that is not
known to be the same program.
"""

from __future__ import annotations

import ast
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPTIMIZER = "byhand.optimizer"
MODULES = ("byhand.backward", "byhand.reverse_sheet", OPTIMIZER)
TESTS = (
    "tests/test_backward_against_torch.py",
    "tests/test_optimizer.py",
    "tests/test_backward_plan.py",
)
PATIENCE = 120  # seconds, after which a mutant counts as one that hangs
EQUIVALENT = {  # changes of a line that no program can tell, with the reason why
    'b.give(step, "x", "multiply", "grad · y", {"x": grad, "y": step.inputs["y"]})': {
        "values swapped": "a product has no order",
    },
    'b.give(step, "y", "multiply", "grad · x", {"x": grad, "y": step.inputs["x"]})': {
        "values swapped": "a product has no order",
    },
    'settings = {name: step.attributes.get(name) for name in ("ids", "scale")}': {
        "items swapped": "a table of settings has no order",
    },
    'seen = {name: scores.attributes[name] for name in ("mask", "queries", "keys")}': {
        "items swapped": "a table of settings has no order",
    },
    '"": b.line(GRAD + packed, "pack_heads", formula, sides, reads, '
    "starts=starts, stride=stride)": {
        "'pack_heads' for ''": "nobody asks for the reader of the only term",
    },
    "elif b.wanted(read):": {
        "condition always true": "the keys and values of every model are learned",
    },
    "if self.terms.get(address):": {
        "condition always true": "every step with a second name has a gradient",
    },
    "own.also(GRAD + alias, own.aliases.get(GRAD + address, GRAD + address))": {
        "left term alone": "no step with a second name hands its gradient on as it is",
        "right term alone": "likewise",
    },
    'read = step.inputs.get(role, "")': {"' + ' for ''": "neither is a name"},
}

Make = Callable[[Any], ast.AST | None]


@dataclass(frozen=True)
class Mutant:
    """A module with one mistake."""

    module: str
    change: str
    line: int
    source: str  # the line as it was
    place: int  # in the order of `_places`
    make: Make

    def tree(self) -> ast.Module:
        """The module as it is now."""
        whole = ast.parse(_text(self.module))
        old = _places(whole)[self.place][0]
        _replace(whole, old, self.make(old))
        return ast.fix_missing_locations(whole)

    def __str__(self) -> str:
        return f"{self.module.rpartition('.')[2]}.py:{self.line}: {self.change}: {self.source}"


@cache
def _text(module: str) -> str:
    return Path(import_module(module).__file__ or "").read_text()


# ------------------------------------------------------------------ mistakes

FLIPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def _statements(node: ast.AST) -> Iterator[tuple[str, Make]]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "left out", lambda _node: ast.Pass()
    if isinstance(node, ast.Return) and not _is_none(node.value):
        yield "returns nothing", lambda _node: ast.Return(None)
    if isinstance(node, ast.If):
        yield "condition turned round", lambda n: _with(n, test=ast.UnaryOp(ast.Not(), n.test))
        yield "condition always true", lambda n: _with(n, test=ast.Constant(True))
    if isinstance(node, ast.AugAssign):
        yield "assigned, not added", lambda n: ast.Assign([n.target], n.value)


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _operators(node: ast.AST) -> Iterator[tuple[str, Make]]:
    if isinstance(node, ast.Compare):
        yield "other comparison", lambda n: _with(n, ops=[FLIPPED[type(n.ops[0])]()])
    if isinstance(node, ast.BoolOp):
        yield "and for or", lambda n: _with(n, op=FLIPPED[type(n.op)]())
        yield "first condition alone", lambda n: n.values[0]
        yield "last condition alone", lambda n: n.values[-1]
    if isinstance(node, ast.UnaryOp):
        yield "sign or not left out", lambda n: n.operand
    if isinstance(node, ast.BinOp):
        if not isinstance(node.op, ast.BitOr):
            yield "other operator", lambda n: _with(n, op=FLIPPED[type(n.op)]())
        yield "left term alone", lambda n: n.left
        yield "right term alone", lambda n: n.right
    if isinstance(node, ast.IfExp):
        yield "the other way round", lambda n: _with(n, body=n.orelse, orelse=n.body)
        yield "always the first", lambda n: n.body


def _values(node: ast.AST) -> Iterator[tuple[str, Make]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "true for false", lambda n: ast.Constant(not n.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield "one more", lambda n: ast.Constant(n.value + 1)
    if isinstance(node, ast.Dict) and len(node.values) > 1 and None not in node.keys:
        for place in range(len(node.keys)):
            yield f"entry {place} left out", lambda n, place=place: _without(n, place)
        yield "values swapped", lambda n: _with(n, values=[*n.values[1:], n.values[0]])
    if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load) and node.elts:
        for place in range(len(node.elts)):
            yield (
                f"item {place} left out",
                lambda n, place=place: _with(n, elts=n.elts[:place] + n.elts[place + 1 :]),
            )
        if len(node.elts) > 1:
            yield "items swapped", lambda n: _with(n, elts=[*n.elts[1:], n.elts[0]])


def _calls(node: ast.AST) -> Iterator[tuple[str, Make]]:
    named = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name | ast.Attribute)
    if named and isinstance(node.ctx, ast.Load):
        yield "index for what it finds", lambda n: n.slice
    if isinstance(node, ast.comprehension) and node.ifs:
        yield "every one taken", lambda n: _with(n, ifs=[])
    if not isinstance(node, ast.Call):
        return
    for place, keyword in enumerate(node.keywords):
        if keyword.arg == "strict":
            continue
        yield (
            f"{keyword.arg or '**'} left out",
            lambda n, place=place: _with(n, keywords=n.keywords[:place] + n.keywords[place + 1 :]),
        )
    whole = any(isinstance(value, ast.Constant) for value in node.args)  # Fraction(1) is 1
    if len(node.args) == 1 and isinstance(node.func, ast.Name) and not whole:
        yield f"without {node.func.id}", lambda n: n.args[0]


CHANGES = (_statements, _operators, _values, _calls)


def _with(node: Any, **fields: Any) -> ast.AST:
    changed = deepcopy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _without(node: Any, place: int) -> ast.AST:
    keys, values = ([*part[:place], *part[place + 1 :]] for part in (node.keys, node.values))
    return _with(node, keys=keys, values=values)


# ------------------------------------------------------------------ where mistakes are made


def mutants(module: str) -> Iterator[Mutant]:
    """Every mutant of a module, from its top to its bottom."""
    lines = _text(module).splitlines()
    for place, (node, others) in enumerate(_places(ast.parse(_text(module)))):
        changes = [change for kind in CHANGES for change in kind(node)]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            other = next((text for text in others if text != node.value), "nothing")
            changes.append((f"{other!r} for {node.value!r}", lambda _n, o=other: ast.Constant(o)))
        for name, make in changes:
            line = _line(node)
            yield Mutant(module, name, line, lines[line - 1].strip(), place, make)


def _places(tree: ast.Module) -> list[tuple[ast.AST, list[str]]]:
    """The nodes that may change, each with the strings of its function in order after it.

    Annotations, types, imports and docstrings are no places.
    """
    found: list[tuple[ast.AST, list[str]]] = []
    for top in tree.body:
        if isinstance(top, ast.Import | ast.ImportFrom) or _is_type(top):
            continue
        nodes = list(_inside(top))
        texts = [(n, n.value) for n in nodes if isinstance(n, ast.Constant) and _is_text(n)]
        for node in nodes:
            after = next((i for i, (n, _t) in enumerate(texts) if n is node), -1) + 1
            found.append((node, [t for _n, t in texts[after:] + texts[:after]]))
    return found


def _is_type(node: ast.stmt) -> bool:
    """Whether this names a type, as `Sides = tuple[…]` does."""
    value = node.value if isinstance(node, ast.Assign) else None
    return isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name)


def _is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, str)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return  # a check of its own
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "func") and not (
            name == "func" and isinstance(value, ast.Attribute | ast.Subscript)
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child)


def _line(node: Any) -> int:
    return getattr(node, "lineno", 0) or getattr(getattr(node, "target", None), "lineno", 0)


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST | None) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list) and any(item is old for item in value):
                setattr(parent, name, [new if item is old else item for item in value])
                return
    raise AssertionError("a place is in its tree")


# ------------------------------------------------------------------ whether the tests notice


def install(mutant: Mutant) -> None:
    """Puts the mutant in the place of its module, wherever it was imported."""
    module = import_module(mutant.module)
    before = {id(value): name for name, value in vars(module).items() if callable(value)}
    exec(compile(mutant.tree(), module.__file__ or "", "exec"), vars(module))
    for other in [m for m in sys.modules.values() if isinstance(m, ModuleType) and m is not module]:
        if other.__name__.split(".")[0] in ("byhand", "oracles", "benchmarks", *map(_name, TESTS)):
            for name, value in list(vars(other).items()):
                if id(value) in before:
                    setattr(other, name, vars(module)[before[id(value)]])


def _name(file: str) -> str:
    return Path(file).stem


class Checks:
    """The tests, of which a mutant needs only those whose plans it changes.

    What torch finds for a model is the same for all mutants, so it is worked out once.
    """

    def __init__(self) -> None:
        self.gradients, self.optimizer = map(import_module, map(_name, TESTS[:2]))
        self.learners = import_module("oracles.learners").learners()
        for name in ("in_torch", "gradients_of"):
            setattr(self.gradients, name, _once(getattr(self.gradients, name)))
        self.passes = [self._pass(learner) for learner in self.learners]
        for learner in self.learners:
            self._compare(learner)
        self.cases = [param.values for param in self.optimizer.CASES]
        self.steps = [self._step(*case) for case in self.cases]

    def _pass(self, learner: Any) -> Any:
        plan = self.gradients.adjoint(learner.plan())
        return _without_formulas(plan), plan.aliases

    def _step(self, kind: str, clip: Any, decay: Any) -> Any:
        rule = self.optimizer.rule_of(kind, clip=clip, decay=decay)
        plan = self.gradients.adjoint(self.learners[0].plan())
        steps = (replace(rule, step=step) for step in (1, 2))
        return [_without_formulas(self.optimizer.update(plan, step)) for step in steps]

    def _compare(self, learner: Any) -> None:
        self.gradients.test_gradients_are_those_of_a_pass_as_frameworks_write_it(learner)
        make = self.gradients.Floats
        self.gradients.test_the_gradient_of_every_step_is_autograds(make, learner)

    def run(self, module: str) -> str:
        """The file of the first test that fails, or ""."""
        gradients, optimizer, plans = TESTS
        if module == OPTIMIZER:
            return _fails(self._steps, optimizer) or _plan_fails(plans)
        return _fails(self._passes, gradients) or _plan_fails(plans)

    def _passes(self) -> None:
        for learner, known in zip(self.learners, self.passes, strict=True):
            if self._pass(learner) != known:
                self._compare(learner)

    def _steps(self) -> None:
        for case, known in zip(self.cases, self.steps, strict=True):
            if self._step(*case) != known:
                self.optimizer.test_five_steps_are_torchs(self.gradients.Floats, *case)


def _without_formulas(plan: Any) -> list[Any]:
    """What the numbers hang on."""
    return [replace(step, formula="") for step in plan]


def _fails(check: Callable[[], None], file: str) -> str:
    try:
        check()
    except BaseException:  # a mutant may do anything
        return file
    return ""


def _plan_fails(file: str) -> str:
    import pytest

    quiet = "ignore::pytest.PytestAssertRewriteWarning"  # the other files are imported already
    status = pytest.main(["-x", "-q", "-W", quiet, "-p", "no:cacheprovider", file])
    if status not in (0, 1):
        raise RuntimeError(f"pytest ends with {status}")
    return file if status else ""


def _once(work: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[str, Any] = {}

    def recalled(*given: Any, **more: Any) -> Any:
        key = repr((given[0], more))
        if key not in known:
            known[key] = work(*given, **more)
        return dict(known[key])

    return recalled


def killer(mutant: Mutant, checks: Checks) -> str:
    """The file of the first test that fails with this mutant, or ""; in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(mutant, checks, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    _pid, status = os.waitpid(child, 0)
    return told if os.WIFEXITED(status) else "it hangs or crashes"


def _child(mutant: Mutant, checks: Checks, writing: int) -> None:
    signal.alarm(PATIENCE)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    try:
        install(mutant)
        told = checks.run(mutant.module)
    except BaseException as error:
        told = f"{type(error).__name__}: {error}"
    os.write(writing, told.encode())
    os._exit(0)


def main(sample: int = 1) -> int:
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "tests"))
    checks = Checks()
    start, killed, living = time.monotonic(), Counter[str](), 0
    every = [mutant for module in MODULES for mutant in mutants(module)][::sample]
    for mutant in every:
        test = killer(mutant, checks)
        killed[test] += 1
        if not test and mutant.change not in EQUIVALENT.get(mutant.source, ()):
            living += 1
            print(f"  lives: {mutant}", flush=True)
        if sum(killed.values()) % 100 == 0:
            print(f"  {sum(killed.values())} of {len(every)}", file=sys.stderr, flush=True)
    by_module = Counter(mutant.module for mutant in every)
    counts = ", ".join(f"{count} of {name}" for name, count in by_module.items())
    print(f"{len(every)} mutants ({counts}): {living} live; {time.monotonic() - start:.0f} s")
    for test, count in killed.most_common():
        print(f"  {count:4} {'killed by ' + test if test else 'the same program'}")
    return 1 if living else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[sys.argv.index("--sample") + 1]) if "--sample" in sys.argv else 1))
