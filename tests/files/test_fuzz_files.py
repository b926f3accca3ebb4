"""Whatever a model file holds, a model or an InputError comes out of it, and soon."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from budgets import examples
from byhand.errors import InputError
from byhand.expression import FUNCTIONS
from byhand.files import parse_model, parse_spec
from byhand.model import Model
from byhand.models import builtin_names, open_model
from byhand.parameters import parameters

DOCS = Path(__file__).parents[2] / "docs"
FILES = [Path(open_model(name).source) for name in builtin_names()[:3]]
FILES += sorted(
    set((DOCS / "examples").glob("*.yaml")) - set((DOCS / "examples").glob("*.property.yaml"))
)
TEXTS = [path.read_text("utf-8") for path in FILES]
TREES = [yaml.load(text, Loader=yaml.BaseLoader) for text in TEXTS]

# What people and machines get wrong, or what may upset a reader of YAML.
PIECES = [
    "0", "-1", "1/0", "1e9", "1e-9999", "10^10^10", "exp(exp(exp(1000)))", "sqrt(-1)", ".nan",
    "inf", "none", "true", "no", "masked", "unknown", "identity", "zeros", "ones", '"@embed.token"',
    '"@block.0.attn.q.T"', '"@block.*.attn.k"', "{}", "[]", "[[]]", "[[[1]]]", "{product: [2]}",
    "{printed: 2, values: [[1]]}", "{normal: {std: 1, seed: 1}}", "{size: 3}", "rope", "alibi",
    "learned", "[learned, rope]", "{kind: rope, angles: given}", "rmsnorm", "post", "parallel",
    "999999999", "&a", "*a", "!!set", "<<:", "? ", "- ", ": ", "\t", "\n", "---\n", "...", "|", ">",
    "%YAML 9.9", "'", '"', "`", "@", "é", "\u2028", "\ufeff", "\x07", "block.9.attn.q", "a: b",
]  # fmt: skip


def opened(text: str) -> Model | None:
    """The model, or None where it is refused as it should be."""
    try:
        model = parse_model(text, "fuzz.yaml")
    except InputError as error:
        str(error)  # can be written down
        return None
    needed = {p.name: p.shape for p in parameters(model.spec)}
    assert {name: tensor.shape for name, tensor in model.weights.items()} == needed
    return model


@st.composite
def edited(draw: st.DrawFn) -> str:
    """A good file with pieces cut out, put in or moved."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 20)))
        other = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from([*PIECES, text[other : other + 20]]) | st.text(max_size=4))
        text = text[:start] + piece + text[end:]
    return text


@st.composite
def replaced(draw: st.DrawFn) -> str:
    """A good file in which one value is another, so that the tree stays whole."""
    lines = draw(st.sampled_from(TEXTS)).splitlines()
    which = draw(st.integers(0, len(lines) - 1))
    key, colon, value = lines[which].partition(": ")
    if colon and "{" in value and draw(st.booleans()):
        inner = value.strip("{} \n").split(", ")
        at = draw(st.integers(0, len(inner) - 1))
        inner[at] = inner[at].partition(": ")[0] + ": " + draw(st.sampled_from(PIECES))
        lines[which] = f"{key}: {{{', '.join(inner)}}}"
    elif colon:
        lines[which] = f"{key}: {draw(st.sampled_from(PIECES))}"
    else:
        del lines[which]
    return "\n".join(lines)


SCALARS = st.sampled_from(PIECES) | st.integers(-3, 9).map(str) | st.text(max_size=5)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SCALARS, inner, max_size=4),
    max_leaves=10,
)


@st.composite
def regrown(draw: st.DrawFn) -> str:
    """A good tree in which one branch is a random one."""
    tree = draw(st.sampled_from(TREES))
    path = []
    node = tree
    while isinstance(node, dict) and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(node)))
        path.append(key)
        node = node[key]

    def grown(node: object, path: list[str]) -> object:
        if not path:
            return draw(JSON)
        assert isinstance(node, dict)
        return {**node, path[0]: grown(node[path[0]], path[1:])}

    return yaml.dump(grown(tree, path), Dumper=yaml.SafeDumper, allow_unicode=True)


@settings(max_examples=examples(600))
@given(edited())
def test_an_edited_file_is_opened_or_refused(text: str) -> None:
    opened(text)


@settings(max_examples=examples(600))
@given(replaced())
def test_a_file_with_another_value_is_opened_or_refused(text: str) -> None:
    opened(text)


@settings(max_examples=examples(500))
@given(regrown())
def test_a_file_with_a_random_branch_is_opened_or_refused(text: str) -> None:
    opened(text)


@settings(max_examples=examples(300))
@given(st.text(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
def test_any_text_at_all_is_opened_or_refused(text: str) -> None:
    opened(text)
    with suppress(InputError):
        parse_spec(text)


NUMBERS = st.sampled_from(
    ["0", "1", "2", "1/3", "-7", "0.5", "1e3", "e", "pi", "80", "1000", "1e-9"]
)
FORMS = st.recursive(
    NUMBERS,
    lambda x: (
        st.builds("{}({})".format, st.sampled_from(FUNCTIONS), x)
        | st.builds("({}{}{})".format, x, st.sampled_from(["+", "-", "*", "/", "^", "**"]), x)
        | st.builds("-{}".format, x)
    ),
    max_leaves=5,
)


@settings(max_examples=examples(400))
@given(st.lists(FORMS, min_size=1, max_size=3))
def test_any_expression_is_a_weight_or_is_refused(entries: list[str]) -> None:
    rows = ", ".join(f"['{entry}']" for entry in entries)
    opened(
        f"vocabulary: {{size: {len(entries)}}}\nmodel: {{d_model: 1, layers: 0}}\n"
        f"weights: {{embed.token: [{rows}]}}"
    )
