"""The tree of a model file: scalars stay text, nodes know their place, files are bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from byhand.errors import ModelFileError
from byhand.files import read_model, tree
from byhand.files.tree import LARGEST_FILE, List, Scalar, Table


def refused(text: str) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        tree.read(text, "m.yaml")
    return caught.value


@pytest.mark.parametrize(
    "text",
    ["on", "0.30", "1e-5", "yes", "null", "012", "1_000", "0x10", "12:30:45", "~", "2001-01-01"],
)
def test_every_scalar_stays_the_text_it_is(text: str) -> None:
    for written in (f"a: {text}", f"a: [{text}]", f"a: '{text}'"):
        node = tree.read(written, "m.yaml").entries["a"]
        scalar = node.items[0] if isinstance(node, List) else node
        assert isinstance(scalar, Scalar)
        assert scalar.text == text


def test_nodes_know_their_line_and_dotted_key() -> None:
    root = tree.read("a:\n  b:\n    - [1, 2]\n    - [3,\n       4]\n  c.d: x\n", "m.yaml")
    inner = root.entries["a"]
    assert isinstance(inner, Table)
    rows = inner.entries["b"]
    assert isinstance(rows, List)
    assert rows.where == "m.yaml:2: a.b"  # the key's line, where an editor should go
    second = rows.items[1]
    assert isinstance(second, List)
    assert second.items[1].where == "m.yaml:5: a.b[1,1]"
    assert inner.entries["c.d"].where == "m.yaml:6: a.c.d"


def test_json_is_the_same_tree() -> None:
    root = tree.read('{"a": {"b":[1,\t2.50, "\\u00e9"]},\n"c": null}', "m.json")
    b = root.at("a.b")
    assert isinstance(b, List)
    assert [item.text for item in b.items if isinstance(item, Scalar)] == ["1", "2.50", "é"]
    assert root.at("c") == Scalar("m.json", 2, "c", "null")


@pytest.mark.parametrize("text", ["", "   \n", "# only a remark\n"])
def test_an_empty_file_is_refused(text: str) -> None:
    assert refused(text).message == "the file is empty"


@pytest.mark.parametrize("text", ["just words", "[a, list]", "3"])
def test_a_file_that_is_no_table_is_refused(text: str) -> None:
    error = refused(text)
    assert error.message == "a model file is a table"
    assert error.expected == "name, vocabulary, model, weights"


def test_a_billion_laughs_are_refused_at_the_first() -> None:
    lines = ["a: &a [ha, ha]"] + [
        f"{y}: &{y} [*{x}, *{x}]" for x, y in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    assert refused("\n".join(lines)).message == "a model file has no anchors"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused_without_recursion(opening: str) -> None:
    assert isinstance(refused(f"a: {opening * 100_000}"), ModelFileError)
    assert isinstance(refused(f"a:\n  {opening * 100_000}"), ModelFileError)


@pytest.mark.parametrize("character", ["\0", "\x07", "\ufffe", "\x9f"])
def test_a_character_that_yaml_forbids_is_refused(character: str) -> None:
    assert "this is not YAML" in refused(f"a: {character}").message


def test_a_file_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"# " + b"x" * LARGEST_FILE)
    with pytest.raises(ModelFileError, match="the file is too large"):
        read_model(path)


def test_bytes_that_are_not_utf8_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: x\nabout: señal\n".encode("latin-1"))
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert caught.value.where == f"{path}:2"
    assert caught.value.found == "0xf1"


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "marked.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: x\n")
    assert list(tree.load(path).entries) == ["name"]


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="the file cannot be read: No such file"):
        read_model(tmp_path / "none.yaml")
    with pytest.raises(ModelFileError, match="this is a folder, not a model file"):
        read_model(tmp_path)
