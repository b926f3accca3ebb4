"""tokenizer.json: text → pieces → ids and back, against the library and against transformers."""

from __future__ import annotations

import builtins
import json
import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from byhand.errors import InputError, TextError
from byhand.subwords import Subwords, open_tokenizer
from byhand.tokens import Continuation, Ids, Tokenizer, Vocabulary

LESSON = [
    "the cat sat on the mat, and the dog sat on the log.\n",
    "Once upon a time there was a naïve café — 3 €, 東京.\n\n",
    "the mat the mat the cat the cat\tsat sat",
] * 20
STORIES = Path(
    os.environ.get("BYHAND_DATA", Path(__file__).parent.parent.parent / "shared" / "data")
) / "stories260K"  # fmt: skip
stories = pytest.mark.skipif(not STORIES.exists(), reason="stories260K is not on this machine")


def byte_level() -> tokenizers.Tokenizer:
    """As GPT-2 and Pythia: every byte has a token, no special token is added."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        LESSON,
        trainers.BpeTrainer(
            vocab_size=330,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    made.add_tokens(["    "])  # as Pythia's runs of blanks: added, but text
    return made


def sentence_pieces() -> tokenizers.Tokenizer:
    """As Llama: ▁ for a blank, bytes for what has no token, <s> before every text."""
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace()  # so that no token spans two words
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    ascii_lesson = [line.encode("ascii", "ignore").decode().replace("\n", "") for line in LESSON]
    made.train_from_iterator(
        ascii_lesson,
        trainers.BpeTrainer(
            vocab_size=380,
            special_tokens=["<unk>", "<s>", "</s>", *bytes_],
            show_progress=False,
        ),
    )
    file = json.loads(made.to_str())
    file["added_tokens"] = file["added_tokens"][:3]  # bytes are ordinary tokens, as in Llama's
    file["pre_tokenizer"] = None
    made = tokenizers.Tokenizer.from_str(json.dumps(file))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    made.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return made


def opened(made: tokenizers.Tokenizer, folder: Path, vocab: int | None = None) -> Subwords:
    made.save(str(folder / "tokenizer.json"))
    found = open_tokenizer(folder, made.get_vocab_size() if vocab is None else vocab)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Subwords:
    return opened(byte_level(), tmp_path_factory.mktemp("gpt"))


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Subwords:
    return opened(sentence_pieces(), tmp_path_factory.mktemp("llama"))


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return [tokenizer.tokens[id] for id in tokenizer.encode(text)]


# ------------------------------------------------------------------ text → pieces → ids


def test_a_blank_before_a_word_is_shown_with_the_word(gpt: Subwords, llama: Subwords) -> None:
    assert pieces(gpt, "the cat sat") == ["the", " cat", " sat"]
    assert pieces(llama, "the cat sat") == ["<s>", " the", " cat", " sat"]


def test_what_cannot_be_seen_is_shown(gpt: Subwords, llama: Subwords) -> None:
    assert pieces(gpt, "cat\n") == ["c", "at", "↵"]
    assert pieces(gpt, "\t\u200b")[0] == "⇥"
    assert pieces(llama, "cat\n\x07") == ["<s>", " cat", "↵", "<0x07>"]
    assert pieces(llama, "é") == ["<s>", " ", "<0xC3>", "<0xA9>"]
    assert pieces(gpt, "\U0001f600") == ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]


def test_special_tokens_stand_as_they_are_and_are_no_text(gpt: Subwords, llama: Subwords) -> None:
    ids = llama.encode("the cat</s>")
    assert [llama.tokens[id] for id in ids] == ["<s>", " the", " cat", "</s>"]
    assert [llama.special(id) for id in ids] == [True, False, False, True]
    assert llama.decode(ids) == "the cat"
    assert pieces(gpt, "the<|endoftext|>")[-1] == "<|endoftext|>"
    assert pieces(gpt, "the    cat")[1] == "    "
    assert not gpt.special(gpt.encode("    ")[0])


@given(text=st.text(min_size=1))
@example("the cat sat on the mat")
@example(" \n\t é€東京😀\x00")
def test_a_byte_level_tokenizer_gives_every_text_back(gpt: Subwords, text: str) -> None:
    assert gpt.decode(gpt.encode(text)) == text


@given(text=st.text())
@example(" two  blanks ")
def test_a_sentence_piece_tokenizer_gives_every_text_back(llama: Subwords, text: str) -> None:
    assert llama.decode(llama.encode(text)) == text


@given(text=st.text(min_size=1) | st.text("acehmost .\n", min_size=1))
def test_the_pieces_of_plain_ascii_are_the_text(gpt: Subwords, text: str) -> None:
    shown = "".join(pieces(gpt, text))
    if text.isascii() and text.isprintable():
        assert shown == text
    assert shown.isprintable()


def test_every_token_is_found_again_by_its_piece(gpt: Subwords, llama: Subwords) -> None:
    for tokenizer in (gpt, llama):
        assert [tokenizer.id(piece) for piece in tokenizer.tokens] == list(range(len(tokenizer)))
        assert len(set(tokenizer.tokens)) == len(tokenizer)


def test_tokens_are_a_sequence_made_when_asked_for(gpt: Subwords) -> None:
    assert gpt.tokens[-1] == "    "
    assert gpt.tokens[1:3] == ("!", '"')
    assert gpt.sample().startswith("<|endoftext|>, !, ")
    with pytest.raises(IndexError):
        gpt.tokens[len(gpt)]


def test_an_empty_text_is_refused_unless_a_special_token_stands_for_it(
    gpt: Subwords, llama: Subwords
) -> None:
    assert pieces(llama, "") == ["<s>"]
    with pytest.raises(TextError) as caught:
        gpt.encode("")
    assert caught.value.message == "the text is empty"


def test_half_a_surrogate_pair_is_no_text(gpt: Subwords) -> None:
    for read in (gpt.encode, gpt.id):
        with pytest.raises(TextError) as caught:
            read("ab\ud800")
        assert caught.value.message == "the text is not Unicode"
        assert caught.value.found == "'\\ud800' at position 2"


# ------------------------------------------------------------------ a token by its name


def test_a_token_is_named_as_shown_as_text_or_as_written(gpt: Subwords, llama: Subwords) -> None:
    for tokenizer, written in ((gpt, "Ġmat"), (llama, "▁mat")):
        assert tokenizer.tokens[tokenizer.id(written)] == " mat"
        assert tokenizer.tokens[tokenizer.id(" mat")] == " mat"
        assert tokenizer.tokens[tokenizer.id("time")] == " time"  # there is no "time" without one
        assert tokenizer.tokens[tokenizer.id("at")] == "at"
        assert tokenizer.tokens[tokenizer.id("↵")] == "↵"
    assert llama.id("<s>") == 1


def test_a_letter_with_which_gpt2_spells_a_byte_is_still_a_letter() -> None:
    vocabulary = {"Ã": 0, "©": 1, "é": 2, "Ã©": 3}
    made = tokenizers.Tokenizer(models.BPE(vocabulary, [("Ã", "©")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    found = Subwords(made, 4, "here")
    assert list(found.tokens) == ["<0xC3>", "<0xA9>", "<0xE9>", "é"]
    assert found.id("é") == 3
    assert found.id("<0xE9>") == 2


def test_a_text_of_several_tokens_is_no_token(gpt: Subwords, llama: Subwords) -> None:
    with pytest.raises(TextError) as caught:
        llama.id("the cat")
    assert caught.value.message == "'the cat' is not one token"
    assert caught.value.expected == "one token, such as ' the'"
    assert caught.value.found == "' the' · ' cat'"
    with pytest.raises(TextError) as caught:
        gpt.id("")
    assert caught.value.message == "'' is not one token"


# ------------------------------------------------------------------ ids the model lacks


def test_ids_beyond_the_tokenizer_are_shown_by_number(tmp_path: Path) -> None:
    padded = opened(byte_level(), tmp_path, vocab=1000)
    assert len(padded) == len(padded.tokens) == 1000
    assert padded.tokens[999] == "<999>"
    assert padded.id("<999>") == 999
    assert padded.special(999)
    assert padded.decode([*padded.encode("the cat"), 999]) == "the cat"


def test_a_token_beyond_the_model_is_refused_by_name(tmp_path: Path) -> None:
    small = opened(byte_level(), tmp_path, vocab=300)
    with pytest.raises(TextError) as caught:
        small.encode("a    b")
    assert caught.value.message == "the tokenizer has a token that the model does not know"
    assert caught.value.expected == "ids from 0 to 299"
    assert caught.value.found == "'    ' at position 1, id 316"
    with pytest.raises(TextError):
        small.id("    ")


# ------------------------------------------------------------------ what the file asks for besides


def test_truncation_padding_and_dropout_are_switched_off_and_told(tmp_path: Path) -> None:
    made = byte_level()
    made.enable_truncation(4)
    made.enable_padding(length=64, pad_token="<|endoftext|>")
    made.save(str(tmp_path / "tokenizer.json"))
    file = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))
    file["model"]["dropout"] = 0.5
    (tmp_path / "tokenizer.json").write_text(json.dumps(file), "utf-8")
    found = open_tokenizer(tmp_path, 331)
    assert found is not None
    assert pieces(found, "the cat sat on the mat") == ["the", " cat", " sat", " on", " the", " mat"]
    assert found.notes == (
        "tokenizer.json cuts texts after 4 tokens: switched off",
        "tokenizer.json fills texts up with <|endoftext|>: switched off",
        "tokenizer.json leaves merges out at random (dropout 0.5): switched off",
    )


def test_an_ordinary_file_has_no_notes(gpt: Subwords, llama: Subwords) -> None:
    assert gpt.notes == llama.notes == ()


def test_other_kinds_of_tokenizers_are_shown_as_they_are_written(tmp_path: Path) -> None:
    made = tokenizers.Tokenizer(models.WordLevel({"[UNK]": 0, "the": 1, "cat": 2}, "[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    found = opened(made, tmp_path)
    assert pieces(found, "the cat sat") == ["the", "cat", "[UNK]"]
    assert found.id("cat") == 2
    assert found.id("[UNK]") == 0
    with pytest.raises(TextError) as caught:
        found.id("sat")  # the sign for the unknown is not a token named sat
    assert caught.value.found == "'[UNK]'"


def test_a_unigram_tokenizer_shows_its_blanks_too(tmp_path: Path) -> None:
    scores = [("<unk>", 0.0), ("▁the", -1.0), ("▁cat", -1.0), ("s", -2.0), ("▁", -3.0)]
    made = tokenizers.Tokenizer(models.Unigram(scores, 0, False))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    found = opened(made, tmp_path)
    assert pieces(found, "the cats") == [" the", " cat", "s"]
    assert found.decode(found.encode("the cats")) == "the cats"
    with pytest.raises(TextError):
        found.id("é")


# ------------------------------------------------------------------ files that are no tokenizer


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "EOF while parsing a value at line 1 column 0"),
        (b"{", "EOF while parsing an object at line 1 column 1"),
        (b'{"model": ' * 200_000, "recursion"),
        (b"\xff\xfe", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"[]", "expected struct Tokenizer"),
        (b'{"a": 1}', "line 1 column"),
        (b'{"model": {"type": "BPE"}}', ""),
        (b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}', ""),
    ],
)
def test_a_file_that_is_no_tokenizer_is_refused_by_name(
    tmp_path: Path, content: bytes, found: str
) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(InputError) as caught:
        open_tokenizer(tmp_path, 10)
    assert caught.value.message == "this is not a tokenizer"
    assert caught.value.where == str(tmp_path / "tokenizer.json")
    assert caught.value.found is not None
    assert caught.value.found
    assert found in caught.value.found


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(InputError, match="this is not a tokenizer"):
        open_tokenizer(tmp_path, 10)


def test_damaged_files_are_refused_or_read_but_never_a_traceback(tmp_path: Path) -> None:
    whole = sentence_pieces().to_str()
    file = json.loads(whole)
    chance = random.Random(7)
    for _round in range(150):
        damaged = json.loads(json.dumps(file))
        _damage(damaged, chance)
        (tmp_path / "tokenizer.json").write_text(json.dumps(damaged), "utf-8")
        with suppress(InputError):
            found = open_tokenizer(tmp_path, 380)
            assert found is not None
            pieces(found, "the cat é\n")
            found.id("mat")


def _damage(file: dict[str, Any], chance: random.Random) -> None:
    """Puts something else in the place of one entry, deeper and deeper down."""
    junk = [None, 0, -1, 2**70, "", "x", [], {}, True, 1.5, ["a", "b"], {"type": "x"}]
    place: Any = file
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = chance.choice(keys)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.2:
            place[key] = chance.choice(junk)
            return
        place = inner


def test_a_folder_without_a_tokenizer_has_none(tmp_path: Path) -> None:
    assert open_tokenizer(tmp_path, 10) is None


@pytest.mark.parametrize("names", [("vocab.json", "merges.txt"), ("tokenizer.model",)])
def test_the_makings_of_a_tokenizer_are_not_enough(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).write_text("")
    with pytest.raises(InputError) as caught:
        open_tokenizer(tmp_path, 10)
    assert caught.value.message == "this folder has no tokenizer.json"
    assert caught.value.found == ", ".join(names)
    assert caught.value.hint is not None
    assert "save_pretrained" in caught.value.hint


def test_without_the_library_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    true_import = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "tokenizers":
            raise ImportError(name)
        return true_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError) as caught:
        open_tokenizer(tmp_path, 331)
    assert caught.value.hint == "pip install 'byhand[hf]'"


def test_the_library_is_not_imported_until_a_file_is_opened() -> None:
    code = "import sys, byhand.subwords; sys.exit('tokenizers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------ text as it comes


WORDS = Vocabulary(("the", "cat", "sat"))
LETTERS = Vocabulary(("a", "b", " "), "characters")


def streamed(tokenizer: Tokenizer, prompt: list[int], ids: list[int]) -> list[str]:
    continuation = Continuation(tokenizer, prompt)
    return [*map(continuation.add, ids), continuation.rest()]


def test_a_text_continues_with_its_blanks(llama: Subwords, gpt: Subwords) -> None:
    for tokenizer in (llama, gpt):
        ids = [tokenizer.id(piece) for piece in (" cat", " sat", "↵")]
        prompt = list(tokenizer.encode("the"))
        assert streamed(tokenizer, prompt, ids) == [" cat", " sat", "\n", ""]
    assert streamed(WORDS, [0], [1, 2]) == [" cat", " sat", ""]
    assert streamed(WORDS, [], [1, 2]) == ["cat", " sat", ""]
    assert streamed(LETTERS, [0], [2, 1]) == [" ", "b", ""]
    assert streamed(Ids(9), [0], [8]) == [" 8", ""]


def test_a_character_comes_when_it_is_whole(llama: Subwords) -> None:
    euro = [llama.id(f"<0x{byte:02X}>") for byte in "€".encode()]
    prompt = list(llama.encode("the"))
    assert streamed(llama, prompt, [*euro, llama.id("</s>")]) == ["", "", "€", "", ""]
    assert streamed(llama, prompt, euro[:2]) == ["", "", "��"]
    cat = llama.id(" cat")
    assert streamed(llama, prompt, [*euro, *euro[:1], cat, cat]) == [
        "", "", "€", "", "� cat", " cat", "",
    ]  # fmt: skip
    assert streamed(llama, [*prompt, *euro[:1]], euro[1:]) == ["", "€", ""]


@settings(max_examples=60)
@given(data=st.data(), text=st.text(min_size=1))
def test_a_streamed_text_is_the_text(
    gpt: Subwords, llama: Subwords, data: st.DataObject, text: str
) -> None:
    for tokenizer in (gpt, llama):
        ids = list(tokenizer.encode(text))
        assert "".join(streamed(tokenizer, [], ids)) == text
        cut = data.draw(st.integers(0, len(ids)))
        before = tokenizer.decode(ids[:cut])
        if text.startswith(before):  # the cut is between two characters
            assert "".join(streamed(tokenizer, ids[:cut], ids[cut:])) == text[len(before) :]


@settings(max_examples=20)
@given(text=st.text("abc the\n é€東", min_size=150, max_size=400), data=st.data())
def test_a_long_streamed_text_is_the_text(
    gpt: Subwords, llama: Subwords, data: st.DataObject, text: str
) -> None:
    for tokenizer in (gpt, llama):
        ids = list(tokenizer.encode(text))
        cut = data.draw(st.integers(0, 3))  # special tokens among the text leave no mark in it
        ids[cut + 80 : cut + 80] = [tokenizer.id("<s>" if tokenizer is llama else "<|endoftext|>")]
        whole = tokenizer.decode(ids)
        if "�" not in whole:
            assert "".join(streamed(tokenizer, [], ids)) == whole


@settings(max_examples=60)
@given(ids=st.lists(st.integers(0, 316), min_size=1))
def test_a_streamed_text_of_any_bytes_is_what_the_whole_decodes_to(
    gpt: Subwords, ids: list[int]
) -> None:
    assert "".join(streamed(gpt, [], ids)) == gpt.decode(ids)


# ------------------------------------------------------------------ a model without a tokenizer


def test_ids_are_their_own_text() -> None:
    ids = Ids(128_000)
    assert ids.encode(" 0 127999\n5 ") == (0, 127999, 5)
    assert ids.decode((0, 5)) == "0 5"
    assert len(ids) == len(ids.tokens) == 128_000
    assert ids.tokens[127_999] == "127999"
    assert not ids.special(0)


@pytest.mark.parametrize("text", ["128", "-1", "1.0", "the", "²", "٣", "9" * 5000, ""])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(TextError) as caught:
        Ids(128).encode("0 " + text if text else "")
    assert caught.value.expected == "ids from 0 to 127"


# ------------------------------------------------------------------ the real thing


@stories
def test_the_story_begins_as_it_should() -> None:
    found = open_tokenizer(STORIES, 512)
    assert found is not None
    assert pieces(found, "Once upon a time") == ["<s>", " Once", " upon", " a", " time"]
    assert found.encode("Once upon a time") == (1, 403, 407, 261, 378)
    assert len(set(found.tokens)) == 512
    assert [found.id(piece) for piece in found.tokens] == list(range(512))


@pytest.fixture(scope="module")
def all_folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folders = [tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")]
    for folder, made in zip(folders, (byte_level(), sentence_pieces()), strict=True):
        made.save(str(folder / "tokenizer.json"))
    return [*folders, STORIES] if STORIES.exists() else folders


def test_ids_and_texts_are_those_of_transformers(all_folders: list[Path]) -> None:
    transformers = pytest.importorskip("transformers")  # the newest, which needs new tokenizers
    chance = random.Random(3)
    letters = "abc theTHE \n\t.,é€東😀<s>"
    texts = ["".join(chance.choices(letters, k=chance.randrange(1, 30))) for _ in range(60)]
    for folder in all_folders:
        theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        ours = open_tokenizer(folder, len(theirs))
        assert ours is not None
        for text in [*texts, "Once upon a time, there was a little girl."]:
            ids = theirs(text)["input_ids"]
            assert list(ours.encode(text)) == ids
            assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
