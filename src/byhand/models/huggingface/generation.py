"""What a checkpoint says about generation: where texts begin and end, and what must not come.

generation_config.json is asked first, then config.json.  byhand takes the most probable token or
draws one.  Settings that would make another choice are told in notes, or refused when they matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byhand.language import _
from byhand.models.huggingface.config import Config, read_json
from byhand.spec import ModelSpec

FILE = "generation_config.json"
# Settings that change which token is chosen, and what they are where they change nothing.
CHOOSING: dict[str, tuple[Any, ...]] = {
    "num_beams": (1,), "repetition_penalty": (1,), "encoder_repetition_penalty": (1,),
    "no_repeat_ngram_size": (0,), "encoder_no_repeat_ngram_size": (0,), "min_length": (0,),
    "min_new_tokens": (0,), "begin_suppress_tokens": ([],), "forced_decoder_ids": ([],),
    "sequence_bias": ({},), "guidance_scale": (1,), "penalty_alpha": (0,),
    "exponential_decay_length_penalty": (),
}  # fmt: skip


@dataclass(frozen=True)
class Generation:
    """The ids that begin, end and must not continue a text, and notes on what is not done."""

    start: tuple[int, ...]
    ends: tuple[int, ...]
    never: tuple[int, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path, config: Config, spec: ModelSpec) -> Generation:
        """What the folder of a model says."""
        path = folder / FILE
        asked = (Config(path, read_json(path)), config) if path.exists() else (config,)
        start: tuple[int, ...] = ()
        if spec.encoder is not None:
            first = _ids(asked, "decoder_start_token_id") or _ids(asked, "bos_token_id")
            start = (*first[:1], *_ids(asked[:1], "forced_bos_token_id")[:1])
        return cls(start, _ids(asked, "eos_token_id"), _never(asked[0]), _notes(asked[0]))


def _ids(asked: tuple[Config, ...], key: str) -> tuple[int, ...]:
    """The ids of a key, of the first file that has it: none, one or a list."""
    for at in asked:
        _key, found = at.value(key, None)
        if found is not None:
            every: list[Any] = found if isinstance(found, list) else [found]
            if not all(type(id) is int and id >= 0 for id in every):
                raise at.refuse(key, _("an id, a list of ids, or null"))
            return tuple(dict.fromkeys(every))
    return ()


def _never(said: Config) -> tuple[int, ...]:
    """The ids that must not be chosen: those suppressed, and bad words of one token."""
    never = list(_ids((said,), "suppress_tokens"))
    _key, bad = said.value("bad_words_ids", None)
    for word in bad if isinstance(bad, list) else ():
        if isinstance(word, list) and len(word) == 1 and type(word[0]) is int:
            never.append(word[0])
    return tuple(dict.fromkeys(never))


def _notes(said: Config) -> tuple[str, ...]:
    """A note on settings by which transformers may choose another token."""
    table = said.table
    found = [key for key, usual in CHOOSING.items()
             if key in table and table[key] is not None and table[key] not in usual]  # fmt: skip
    if not found:
        return ()
    names = ", ".join(f"{key} {table[key]}"[:40] for key in found)
    text = _("{file} asks for {names}; byhand takes the most probable token, or draws one")
    return (text.format(file=said.path.name, names=names),)
