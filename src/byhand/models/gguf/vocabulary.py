"""The tokenizer that a GGUF file holds, written as a tokenizer.json and read by `subwords`.

    llama   SentencePiece with scores: of all pairs, the one with the best joint piece is merged
            first; a character without a piece becomes its bytes
    gpt2    byte-level merges, after the text is cut by the patterns of `tokenizer.ggml.pre`

Other kinds have no text here: their tokens are ids, and a note says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.files.gguf import Contents
from byhand.files.mapped import shown
from byhand.language import _
from byhand.subwords import tokenizer_of
from byhand.tokens import Ids, Tokenizer

PREFIX = "tokenizer.ggml."
UNKNOWN, CONTROL, OWN, BYTE = 2, 3, 4, 6  # kinds of tokens
_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def _letters(digits: str) -> str:
    return rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}|{_REST}"


def _cases(digits: str, endings: str) -> str:
    first = r"[^\r\n\p{L}\p{N}]?"
    rest = _REST.replace(r"[\r\n]*", r"[\r\n/]*")
    return rf"{first}{_UPPER}*{_LOWER}+{endings}|{first}{_UPPER}+{_LOWER}*{endings}|{digits}|{rest}"


_TRIPLES, _DIGIT = r"\p{N}{1,3}", r"\p{N}"
# how a text is cut before its bytes are merged; patterns one after the other
PATTERNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "jais", "modern-bert", "mellum"), (_WORDS,)),
    **dict.fromkeys(
        ("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"),
        (_DIGIT, _WORDS),
    ),
    **dict.fromkeys(
        ("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2", "dbrx", "smaug-bpe",
         "glm4", "chatglm-bpe"),
        (_letters(_TRIPLES),),
    ),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan"), (_letters(_DIGIT),)),
    **dict.fromkeys(("gpt-4o", "llama4"), (_cases(_TRIPLES, f"{_ENDINGS}?"),)),
    "tekken": (_cases(_DIGIT, ""),),
    "falcon": (r"[\p{P}\$\+<=>\^~\|`]+", _WORDS, "[0-9][0-9][0-9]"),
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _WORDS, r"\p{N}+", "[0-9][0-9][0-9]"),
    "deepseek-v3": (
        _TRIPLES,
        "[一-龥぀-ゟ゠-ヿ]+",
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
}  # fmt: skip
WHOLE_FIRST = ("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2", "tekken")


def vocabulary_of(contents: Contents, size: int) -> tuple[Tokenizer, tuple[str, ...]]:
    """The tokenizer of a file for a model of `size` embeddings, and notes on it."""
    words = _Words(contents)
    kind = words.text("model")
    if kind == "llama":
        made = words.pieces()
    elif kind == "gpt2" and words.text("pre", "default") in PATTERNS:
        made = words.merged()
    else:
        note = _("byhand does not read its tokenizer ({kind}): the text is ids from 0 to {last}")
        name = kind if kind != "gpt2" else f"{kind}, {words.text('pre')}"
        if not kind or kind in ("none", "no_vocab"):
            note = _("the file has no tokenizer: the text is ids from 0 to {last}")
        return Ids(size), (note.format(kind=shown(name), last=size - 1),)
    tokenizer = tokenizer_of(json.dumps(made), size, str(contents.path))
    return tokenizer, tuple(tokenizer.notes)


def ends_of(contents: Contents, size: int) -> tuple[int, ...]:
    """The ids that end a text."""
    found = [contents.settings.get(PREFIX + key) for key in ("eos_token_id", "eot_token_id")]
    return tuple(dict.fromkeys(id for id in found if type(id) is int and 0 <= id < size))


class _Words:
    """The settings of a tokenizer."""

    def __init__(self, contents: Contents) -> None:
        self.path, self.settings = contents.path, contents.settings

    def value(self, key: str, default: Any = None) -> Any:
        return self.settings.get(PREFIX + key, default)

    def text(self, key: str, default: str = "") -> str:
        found = self.value(key, default)
        return found if isinstance(found, str) else ""

    def flag(self, key: str, default: bool) -> bool:
        """A truth value; the default where there is none."""
        found = self.value(key, default)
        return found if isinstance(found, bool) else default

    def texts(self, key: str) -> list[str]:
        """A list of texts, which must be there."""
        found = self.value(key)
        if not isinstance(found, list):
            raise self.refuse(key, _("a list of texts"), found)
        return found

    def refuse(self, key: str, expected: str, found: object) -> InputError:
        return InputError(
            _("the tokenizer of this file cannot be read"),
            where=f"{self.path}: {PREFIX}{key}",
            expected=expected,
            found=_("nothing") if found is None else shown(str(found)),
        )

    def tokens(self) -> list[str]:
        """Every token, each once: a second one of the same spelling cannot be cut from a text."""
        every = self.texts("tokens")
        seen: set[str] = set()
        for place, token in enumerate(every):
            if token in seen:
                every[place] = f"{token}<{place}>"
            seen.add(every[place])
        return every

    def kinds(self, count: int) -> Sequence[int]:
        """What kind each token is of."""
        found = self.value("token_type")
        if found is None:
            return [1] * count
        if not isinstance(found, np.ndarray) or len(found) != count:
            raise self.refuse("token_type", _("one number for each token"), found)
        return [int(kind) for kind in found]

    # -------------------------------------------------------------- a tokenizer.json

    def pieces(self) -> dict[str, Any]:
        """SentencePiece, as merges in the order of their scores."""
        tokens = self.tokens()
        scores = self.value("scores")
        if not isinstance(scores, np.ndarray) or len(scores) != len(tokens):
            raise self.refuse("scores", _("one number for each token"), scores)
        kinds = self.kinds(len(tokens))
        unknown = next((t for t, kind in zip(tokens, kinds, strict=True) if kind == UNKNOWN), None)
        steps: list[dict[str, Any]] = [
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        ]
        strip = []
        if self.flag("add_space_prefix", True):
            steps.insert(0, {"type": "Prepend", "prepend": "▁"})
            strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
        model = {
            "type": "BPE", "dropout": None, "unk_token": unknown, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True,
            "ignore_merges": False, "vocab": {token: id for id, token in enumerate(tokens)},
            "merges": list(_by_score(tokens, scores)),
        }  # fmt: skip
        decoders = [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}, *strip,
        ]  # fmt: skip
        return self.whole(
            tokens, kinds, model,
            normalizer={"type": "Sequence", "normalizers": steps},
            pre_tokenizer=None,
            decoder={"type": "Sequence", "decoders": decoders},
            begins=True,
        )  # fmt: skip

    def merged(self) -> dict[str, Any]:
        """Byte-level merges."""
        tokens, pre = self.tokens(), self.text("pre", "default")
        cuts: list[dict[str, Any]] = [
            {
                "type": "Split",
                "pattern": {"Regex": pattern},
                "behavior": "Isolated",
                "invert": False,
            }
            for pattern in PATTERNS[pre]
        ]
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                 "use_regex": False}  # fmt: skip
        model = {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": pre in WHOLE_FIRST,
            "vocab": {token: id for id, token in enumerate(tokens)},
            "merges": self.texts("merges"),
        }  # fmt: skip
        return self.whole(
            tokens, self.kinds(len(tokens)), model,
            normalizer=None,
            pre_tokenizer={"type": "Sequence", "pretokenizers": [*cuts, level]},
            decoder=level,
            begins=pre in WHOLE_FIRST,
        )  # fmt: skip

    def whole(
        self,
        tokens: list[str],
        kinds: Sequence[int],
        model: Mapping[str, Any],
        *,
        normalizer: Any,
        pre_tokenizer: Any,
        decoder: Any,
        begins: bool,
    ) -> dict[str, Any]:
        """The file: signs for the model are tokens that are found whole in a text."""
        signs = (UNKNOWN, CONTROL, OWN)
        added = [
            {"id": id, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": kind != OWN}
            for id, (token, kind) in enumerate(zip(tokens, kinds, strict=True)) if kind in signs
        ]  # fmt: skip
        return {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
            "post_processor": self.around(tokens, begins), "decoder": decoder, "model": model,
        }  # fmt: skip

    def around(self, tokens: list[str], begins: bool) -> dict[str, Any] | None:
        """The tokens that begin and end every text."""
        text: dict[str, Any] = {"Sequence": {"id": "A", "type_id": 0}}
        single, special = [text], {}
        for key, before in (("bos", True), ("eos", False)):
            id = self.value(f"{key}_token_id")
            asked = self.flag(f"add_{key}_token", begins and before)
            if not asked or type(id) is not int or not 0 <= id < len(tokens):
                continue
            token = tokens[id]
            sign = {"SpecialToken": {"id": token, "type_id": 0}}
            single.insert(0 if before else len(single), sign)
            special[token] = {"id": token, "ids": [id], "tokens": [token]}
        if not special:
            return None
        return {"type": "TemplateProcessing", "single": single, "pair": single,
                "special_tokens": special}  # fmt: skip


def _by_score(tokens: list[str], scores: Any) -> Iterator[list[str]]:
    """Every way to make a piece of two, those of the best pieces first."""
    known = {token: float(score) for token, score in zip(tokens, scores, strict=True)}
    for token in sorted(known, key=lambda each: -known[each]):
        for cut in range(1, len(token)):
            if token[:cut] in known and token[cut:] in known:
                yield [token[:cut], token[cut:]]
