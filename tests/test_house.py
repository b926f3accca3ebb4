"""The map of the house is complete, its layers have no exceptions, its rooms say what they are."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import grimp
import pytest

import byhand

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST_FIRST_LINE = 100
BY_NAME = {  # who imports modules of byhand by a name in a string, and why
    "byhand": "public names are imported when they are first used",
    "byhand.checking.readers": "a reader is imported when a file of its kind is read",
    "byhand.display": "what draws and saves an object is registered, and imported when called for",
    "byhand.document.parts": "a room of parts is imported when one of them is asked for",
    "byhand.serving.answers": "a question's module is imported when it is asked",
    "byhand.train": "torch is imported when training is asked for",
}
PUBLIC = [name for name in byhand.__all__ if not name.startswith("_")]
WITHOUT_EXAMPLE: dict[str, str] = {}  # public name → why its docstring has none


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> Any:
    """docs/describe_house.py, which writes the map."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("describe_house")


# ------------------------------------------------------------------------------- imports


def circle(imports: dict[str, set[str]]) -> list[str] | None:
    """Modules that import each other in a circle, or None."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]  # from who imports to what is imported
    return None


def test_no_modules_import_each_other_in_a_circle_not_even_within_functions() -> None:
    graph = grimp.build_graph("byhand", exclude_type_checking_imports=True)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) == len(MODULES)
    assert circle(imports) is None


def test_a_circle_would_be_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) in (
        ["a", "b", "c", "a"],
        ["b", "c", "a", "b"],
        ["c", "a", "b", "c"],
    )


def test_a_module_is_imported_by_a_string_only_where_that_is_said() -> None:
    """The graph does not see these imports, so each is listed with its reason."""
    found = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
                argument = ast.unparse(node.args[0])
                if not re.fullmatch(r"'(?!byhand)[\w.]+'|package", argument):
                    found.add(name_of(path))
    assert found == set(BY_NAME)


def test_the_layers_name_every_module_and_have_no_exceptions(described: Any) -> None:
    flow = next(one for one in described.checked() if one["name"] == described.FLOW)
    assert flow["exhaustive"]
    assert "ignore_imports" not in flow
    assert ":" not in "".join(flow["layers"]), "who stands side by side is independent"
    named = [name for layer in described.ordered_layers() for name in layer]
    inside = {name_of(path).split(".")[1] for path in MODULES if path.parent != SOURCE / "byhand"}
    beside = {path.stem for path in (SOURCE / "byhand").glob("*.py")} - {"__init__"}
    assert sorted(named) == sorted(inside | beside)


# ------------------------------------------------------------------------------- the map


def test_every_module_is_on_the_map() -> None:
    page = (ROOT / "docs" / "house.md").read_text("utf-8")
    listed, package = set(), "byhand"
    for line in page.splitlines():
        if line.startswith("### "):
            package = f"byhand.{line.removeprefix('### ')}"
            listed.add(package)
        elif found := re.match(r"\| (?:`|\[`)(\w+)/?`", line):
            listed.add(f"{package}.{found[1]}")
    assert listed == {name_of(path) for path in MODULES} - {"byhand"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_first_line_of_a_module_is_a_sentence_that_says_what_is_in_it(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    first, _blank, _rest = text.partition("\n\n")
    assert first.endswith("."), first
    assert "\n" not in first, "the sentence stands on one line"
    assert 0 < len(first) <= LONGEST_FIRST_LINE, first


# ------------------------------------------------------------------------------- docstrings

Classes = dict[str, list[ast.ClassDef]]  # by name
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def undocumented() -> Iterator[str]:
    """Every public function and method that neither it nor one it overrides has a docstring for."""
    trees = {name_of(path): ast.parse(path.read_text("utf-8")) for path in MODULES}
    classes: Classes = {}
    for tree in trees.values():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)
    for name, tree in trees.items():
        for node in tree.body:
            if isinstance(node, FUNCTION) and needs_docstring(node):
                yield f"{name}.{node.name}"
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                for inner in node.body:
                    if not isinstance(inner, FUNCTION) or not needs_docstring(inner):
                        continue
                    if not is_documented_above(node, inner.name, classes):
                        yield f"{name}.{node.name}.{inner.name}"


def needs_docstring(function: FUNCTION) -> bool:
    """Whether a function is public and has no docstring; an overload has that of the last one."""
    marks = [ast.unparse(mark) for mark in function.decorator_list]
    second = any(mark == "overload" or mark.endswith(".setter") for mark in marks)
    return not (function.name.startswith("_") or second or ast.get_docstring(function))


def is_documented_above(node: ast.ClassDef, method: str, classes: Classes) -> bool:
    """Whether a base of a class, or a base of that, says what the method does."""
    for base in node.bases:
        name = ast.unparse(base).split("[")[0].split(".")[-1]
        for above in classes.get(name, []):
            own = [one for one in above.body if isinstance(one, FUNCTION) and one.name == method]
            if any(ast.get_docstring(one) for one in own):
                return True
            if above is not node and is_documented_above(above, method, classes):
                return True
    return False


def test_every_public_function_says_what_it_gives() -> None:
    assert list(undocumented()) == []


def test_every_public_name_has_an_example_or_a_reason_for_none() -> None:
    without = {
        name for name in PUBLIC if ">>>" not in (inspect.getdoc(getattr(byhand, name)) or "")
    }
    assert without == set(WITHOUT_EXAMPLE)


def test_the_api_page_has_every_public_name_once() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    assert sorted(re.findall(r"(?m)^::: byhand\.(\w+)$", page)) == sorted(PUBLIC)
