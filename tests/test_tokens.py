"""Text and tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import TextError
from byhand.tokens import Vocabulary, too_long

WORDS = Vocabulary(("the", "cat", "sat", "on", "mat"))
LETTERS = Vocabulary(("A", "B", " "), "characters")


def test_words_are_cut_at_white_space() -> None:
    assert WORDS.encode(" the  cat\tsat\non ") == (0, 1, 2, 3)
    assert WORDS.decode((0, 1, 4)) == "the cat mat"
    assert len(WORDS) == 5


def test_characters_are_cut_one_by_one() -> None:
    assert LETTERS.encode("AB A") == (0, 1, 2, 0)
    assert LETTERS.decode((0, 1, 2, 0)) == "AB A"


@given(st.lists(st.integers(0, 4), min_size=1))
def test_what_is_decoded_is_encoded_back(ids: list[int]) -> None:
    assert list(WORDS.encode(WORDS.decode(ids))) == ids
    assert list(LETTERS.encode(LETTERS.decode([i % 3 for i in ids]))) == [i % 3 for i in ids]


@pytest.mark.parametrize(
    ("vocabulary", "text", "message", "found", "hint"),
    [
        (WORDS, "the dog", "'dog' is not in the vocabulary", "'dog' at position 1", None),
        (WORDS, "the cta", "'cta' is not in the vocabulary", "'cta' at position 1",
         "did you mean cat?"),
        (WORDS, "THE cat", "'THE' is not in the vocabulary", "'THE' at position 0",
         "did you mean the?"),
        (WORDS, "x" * 100, f"'{'x' * 39}…' is not in the vocabulary",
         f"'{'x' * 39}…' at position 0", None),
        (WORDS, "", "the text is empty", "''", None),
        (WORDS, " \n", "the text is empty", "' \\n'", None),
        (LETTERS, "AxB", "'x' is not in the vocabulary", "'x' at position 1", None),
        (LETTERS, "b", "'b' is not in the vocabulary", "'b' at position 0", "did you mean B?"),
        (LETTERS, "", "the text is empty", "''", None),
    ],
)  # fmt: skip
def test_a_text_that_cannot_be_read_is_refused(
    vocabulary: Vocabulary, text: str, message: str, found: str, hint: str | None
) -> None:
    with pytest.raises(TextError) as caught:
        vocabulary.encode(text)
    assert caught.value.message == message
    assert caught.value.found == found
    if hint:
        assert caught.value.hint == hint


def test_the_error_names_what_is_known() -> None:
    with pytest.raises(TextError) as caught:
        LETTERS.encode("x")
    assert caught.value.expected == "A, B, ' '"
    many = Vocabulary(tuple(f"t{i}" for i in range(40)))
    assert many.sample() == "t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, …"


@pytest.mark.parametrize(
    ("tokens", "kind", "message"),
    [
        (("a", "b", "a"), "words", "the token 'a' is in the vocabulary twice"),
        (("a", "b c"), "words", "a token cannot be 'b c'"),
        (("a", ""), "words", "a token cannot be ''"),
        (("a", "\u2003"), "words", "a token cannot be '\\u2003'"),
        (("ab",), "characters", "a token cannot be 'ab'"),
        (("",), "characters", "a token cannot be ''"),
        (("a",), "bytes", "there is no vocabulary of bytes"),
    ],
)
def test_an_impossible_vocabulary_is_refused(
    tokens: tuple[str, ...], kind: str, message: str
) -> None:
    with pytest.raises(TextError) as caught:
        Vocabulary(tokens, kind)
    assert caught.value.message == message


def test_a_text_is_too_long_only_beyond_the_context() -> None:
    assert too_long(4, 4) is None
    assert too_long(400, None) is None
    error = too_long(5, 4)
    assert error is not None
    assert (error.expected, error.found) == ("at most 4 tokens", "5 tokens")
