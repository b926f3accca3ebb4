"""Corpora by name and by file: what they hold, what they are recognised by, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import ByhandError, TextError, UsageError
from byhand.tokens import Vocabulary
from byhand.train.corpora import builtin_corpora, open_corpus, textfile

PINNED = {
    "abc": "7b6972e616cccadbfbdffced1e349265c8d58ba42fa23a5ddbff8460210632b8",
    "verbs": "a16f4feca608b30801b1b682ba3934e7adf7e67eaa00cee51b5f0c2444279c3a",
}


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "text.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", PINNED)
def test_a_built_in_corpus_never_changes(name: str) -> None:
    assert open_corpus(name).digest == PINNED[name]


def test_every_built_in_corpus_is_pinned() -> None:
    assert builtin_corpora() == tuple(PINNED)


@pytest.mark.parametrize("name", PINNED)
def test_the_canonical_example_can_be_read(name: str) -> None:
    corpus = open_corpus(name)
    assert corpus.vocabulary.decode(corpus.vocabulary.encode(corpus.text)) == corpus.text


def test_abc_is_the_pattern_repeated() -> None:
    corpus = open_corpus("abc")
    assert corpus.vocabulary == Vocabulary(("A", "B", "C"), "characters")
    assert corpus.train == ((0, 1, 2) * 32,)
    assert corpus.validation == ((0, 1, 2) * 8,)
    assert corpus.stream
    assert corpus.text == "ABC"


def test_the_digest_depends_on_the_vocabulary_and_every_document_alone() -> None:
    corpus = open_corpus("abc")
    assert replace(corpus, name="other", about="other", text="A").digest == corpus.digest
    others = [
        replace(corpus, vocabulary=Vocabulary(("A", "C", "B"), "characters")),
        replace(corpus, vocabulary=Vocabulary(("A", "B", "C"), "words")),
        replace(corpus, train=((0, 1), (2,))),
        replace(corpus, train=((0, 1, 2),)),
        replace(corpus, train=corpus.validation, validation=corpus.train),
    ]
    assert len({corpus.digest, *(other.digest for other in others)}) == 6


def test_a_text_file_is_read_by_characters_and_its_end_held_out(tmp_path: Path) -> None:
    path = written(tmp_path, "banana canción\r\nfin")
    corpus = open_corpus(path, held_out=0.25)
    assert corpus.vocabulary == Vocabulary(tuple("\n\r abcfinó"), "characters")
    assert corpus.vocabulary.decode(corpus.train[0]) == "banana canción\r"
    assert corpus.vocabulary.decode(corpus.validation[0]) == "\nfin"
    assert corpus.stream
    assert corpus.text == "banana c"
    assert corpus.name == "text.txt"


def test_a_tenth_is_held_out_unless_something_else_is_said(tmp_path: Path) -> None:
    corpus = open_corpus(str(written(tmp_path, "0123456789" * 10)))
    assert (len(corpus.train[0]), len(corpus.validation[0])) == (90, 10)


def test_the_held_out_share_is_the_decimal_that_is_written(tmp_path: Path) -> None:
    """29 of 100; as a float, 0.29 · 100 falls short of 29."""
    assert len(open_corpus(written(tmp_path, "ab" * 50), held_out=0.29).validation[0]) == 29


def test_a_character_of_the_held_out_part_alone_is_known(tmp_path: Path) -> None:
    corpus = open_corpus(written(tmp_path, "a" * 18 + "az"))
    assert corpus.validation == ((0, 1),)
    assert set(corpus.train[0]) == {0}


def test_a_byte_order_mark_is_no_character(tmp_path: Path) -> None:
    assert open_corpus(written(tmp_path, "\ufeff" + "ab" * 20)).vocabulary.tokens == ("a", "b")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=8), st.floats(0.25, 0.75))
def test_a_text_file_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, text: str, held_out: float
) -> None:
    path = written(tmp_path_factory.mktemp("corpus"), b"\xef\xbb\xbf" + text.encode())
    corpus = open_corpus(path, held_out=held_out)
    assert corpus.vocabulary.decode((*corpus.train[0], *corpus.validation[0])) == text
    assert len(corpus.validation[0]) <= held_out * len(text) < len(corpus.validation[0]) + 1


def test_a_path_or_a_folder_tells_a_file_from_a_built_in_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("abc").write_text("xy" * 10)
    assert open_corpus("abc").vocabulary.tokens == ("A", "B", "C")
    assert open_corpus("./abc").vocabulary.tokens == ("x", "y")
    assert open_corpus(Path("abc")).vocabulary.tokens == ("x", "y")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{path}: the file is empty\n  expected: a text to learn from"),
        (
            b"0123456789",
            "{path}: the file is too short\n"
            "  expected: at least 2 characters to learn from and 2 held out\n"
            "  found: 9 to learn from and 1 held out",
        ),
        (
            b"\xef\xbb\xbf",
            "{path}: the file is too short\n"
            "  expected: at least 2 characters to learn from and 2 held out\n"
            "  found: 0 to learn from and 0 held out",
        ),
        (b"fine\nca\xf1a\n" * 9, "{path}:2: the file is not UTF-8 text\n  found: 0xf1"),
        (b"\xff" + b"a" * 99, "{path}:1: the file is not UTF-8 text\n  found: 0xff"),
        (b"\xef\xbb\xbfab\xff" * 9, "{path}:1: the file is not UTF-8 text\n  found: 0xff"),
    ],
)
def test_a_file_that_cannot_be_learned_from_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(TextError) as caught:
        open_corpus(path)
    assert str(caught.value) == message.format(path=path)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TextError) as caught:
        open_corpus(tmp_path)
    assert str(caught.value) == f"{tmp_path}: this is a folder, not a text file"


def test_a_file_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(textfile, "LARGEST", 20)
    assert open_corpus(written(tmp_path, "a" * 20)).stream
    with pytest.raises(TextError) as caught:
        open_corpus(written(tmp_path, "a" * 21))
    assert caught.value.message == "the file is too large"
    assert caught.value.expected == "at most 20 bytes"


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_the_held_out_share_lies_between_0_and_1(tmp_path: Path, share: float) -> None:
    with pytest.raises(UsageError) as caught:
        open_corpus(written(tmp_path, "a" * 99), held_out=share)
    assert caught.value.message == f"the held-out share cannot be {share}"
    assert caught.value.expected == "a number between 0 and 1, such as 0.1"


def test_the_nearest_corpus_is_offered_for_an_unknown_one() -> None:
    with pytest.raises(UsageError) as caught:
        open_corpus("verb")
    assert str(caught.value) == (
        "there is no corpus 'verb'\n"
        "  expected: a text file, or one of abc, verbs\n"
        "  found: verb\n"
        "  hint: did you mean verbs?"
    )


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 5000])
def test_a_name_that_no_file_can_have_is_refused(name: str) -> None:
    with pytest.raises(ByhandError):
        open_corpus(name)
