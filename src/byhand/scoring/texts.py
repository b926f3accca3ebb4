"""Texts to score, from plain text, JSONL and files of token ids.

`read_texts` takes what people have and gives samples:

    a text                    all its tokens but the first are scored
    words.txt                 the text of the file
    texts.jsonl, texts.json   a text a line, or a list of them: a string, a list of ids, or an
                              object with `prompt` and `completion`, or `text`, or `ids`
    texts.ids                 token ids in numerals, a text a line
    texts.npy, texts.npz      arrays of token ids: a row or an array for each text
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from byhand.errors import ByhandError, InputError, TextError, nearest
from byhand.language import _
from byhand.model import Model
from byhand.scoring.samples import Sample

FILES = (".txt", ".jsonl", ".json", ".ids", ".npy", ".npz")
TEXT, IDS = ("text",), ("ids", "input_ids", "token_ids", "tokens")
PROMPT, PROMPT_IDS = ("prompt",), ("prompt_ids", "prompt_token_ids")
COMPLETION = ("completion", "response", "output")
COMPLETION_IDS = ("completion_ids", "completion_token_ids", "response_ids", "output_ids")
FIRST = ("first", "prompt_length")
NAME = ("name", "id", "uid")
MESSAGES = ("messages",)
KNOWN = (*TEXT, *IDS, *PROMPT, *PROMPT_IDS, *COMPLETION, *COMPLETION_IDS, *MESSAGES)

Given = str | Path | Sample | Mapping[str, Any] | Sequence[int]


def read_texts(model: Model, texts: Given | Iterable[Given]) -> list[Sample]:
    """The samples of some texts, files or ids; a TextError says which one cannot be scored.

    >>> import byhand
    >>> model = byhand.open_model("tiny")
    >>> read_texts(model, ["a b c", {"prompt": "a b ", "completion": "c", "name": "mine"}])
    [Sample(name='1', ids=(0, 1, 2), first=1, text='a b c'), \
Sample(name='mine', ids=(0, 1, 2), first=2, text='a b c')]
    """
    refuse_unless_scorable(model)
    found: list[Sample] = []
    for given in _each(texts):
        if is_file(given):
            found += read_file(model, Path(str(given)))
        else:
            found.append(read_text(model, given, str(len(found) + 1)))
    if not found:
        raise TextError(_("there is no text to score"), expected=_("at least one text"), found="0")
    return found


def refuse_unless_scorable(model: Model) -> None:
    """Raises an InputError where a text does not say which tokens should come."""
    if model.spec.encoder is not None or model.in_place or model.output_words is not None:
        raise InputError(
            _("{model} cannot be scored").format(model=model.name),
            expected=_("a model that predicts the next token of the text itself"),
            found=_("a model with an encoder")
            if model.spec.encoder is not None
            else _("a model that answers with words of its own, or in their places"),
        )


def is_file(given: Given) -> bool:
    """Whether a text is meant to be a file: a Path, or a name that ends as files of texts do."""
    if isinstance(given, Path):
        return True
    if not isinstance(given, str) or "\n" in given:
        return False
    return given.endswith(FILES) and not given.endswith(tuple(" " + end for end in FILES))


def _each(texts: Given | Iterable[Given]) -> Iterator[Given]:
    """The texts one by one; one text is allowed to stand alone, also as ids."""
    if isinstance(texts, str | Path | Sample | Mapping):
        yield texts
        return
    listed = list(texts)
    if listed and all(_whole(entry) for entry in listed):
        yield listed  # type: ignore[misc]
        return
    yield from listed  # type: ignore[misc]


# ------------------------------------------------------------------ files


def read_file(model: Model, path: Path) -> list[Sample]:
    """The samples of a file, by how its name ends."""
    if path.suffix not in FILES:
        raise InputError(
            _("the kind of this file is not known"),
            where=str(path),
            expected=", ".join(FILES),
            found=path.suffix or path.name,
        )
    if path.suffix in (".npy", ".npz"):
        entries = list(_arrays(path))
    else:
        entries = list(_lines(path))
    if not entries:
        raise TextError(_("the file holds no text"), where=str(path))
    several = len(entries) > 1
    found = []
    for place, (where, entry) in enumerate(entries, 1):
        name = f"{path.stem}:{place}" if several else path.stem
        try:
            found.append(read_text(model, entry, name))
        except ByhandError as error:
            error.where = error.where or where
            raise
    return found


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Each text of a file of characters, with the place it stands at."""
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            _("there is no file {name}").format(name=repr(str(path))),
            expected=_("a file of texts, or a text that does not end in {ending}").format(
                ending=path.suffix
            ),
        ) from None
    except OSError as error:
        raise InputError(
            _("the file cannot be read"), where=str(path), found=error.strerror or str(error)
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            _("the file cannot be read"),
            where=str(path),
            expected=_("text in UTF-8"),
            found=_("byte {place}").format(place=error.start),
        ) from None
    if path.suffix == ".txt":
        if content:
            yield str(path), content
        return
    if path.suffix == ".json":
        whole = _parsed(content, str(path))
        entries = whole if isinstance(whole, list) and not all(map(_whole, whole)) else [whole]
        yield from ((f"{path}: {place}", entry) for place, entry in enumerate(entries, 1))
        return
    for number, line in enumerate(content.splitlines(), 1):
        where = f"{path}:{number}"
        if line.strip():
            yield where, _numerals(line, where) if path.suffix == ".ids" else _parsed(line, where)


def _parsed(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(
            _("this is not JSON"),
            where=where,
            found=str(error),
            hint=_("plain text belongs in a file that ends in .txt"),
        ) from None


def _numerals(line: str, where: str) -> list[int]:
    pieces = line.replace(",", " ").split()
    for piece in pieces:
        if not (piece.isascii() and piece.isdigit() and len(piece) < 10):
            raise InputError(
                _("this is not a token id"), where=where, expected=_("a whole number"), found=piece
            )
    return list(map(int, pieces))


def _arrays(path: Path) -> Iterator[tuple[str, Any]]:
    """Each row of an array of ids, or each array of an archive; nothing is unpickled."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if path.suffix == ".npz":
            arrays = {f"{path}: {name}": loaded[name] for name in loaded.files}
        else:
            arrays = {str(path): loaded}
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            _("the file cannot be read"), where=str(path), found=str(error).partition("\n")[0]
        ) from None
    for where, array in arrays.items():
        if array.dtype.kind not in "iu" or array.ndim not in (1, 2):
            raise InputError(
                _("this is not an array of token ids"),
                where=where,
                expected=_("whole numbers, with one axis or a row for each text"),
                found=f"{array.dtype} {'×'.join(map(str, array.shape))}",
            )
        if array.ndim == 1:
            yield where, array.tolist()
        else:
            yield from ((f"{where}[{row}]", ids) for row, ids in enumerate(array.tolist()))


# ------------------------------------------------------------------ one text


def read_text(model: Model, given: Any, name: str) -> Sample:
    """One text as a sample: a string, ids, or a mapping with a prompt or ids."""
    if isinstance(given, Sample):
        return checked(model, given)
    if isinstance(given, str):
        return checked(model, Sample(name, _read(model, given), text=given))
    if isinstance(given, Mapping):
        return checked(model, _of_mapping(model, given, name))
    return checked(model, Sample(name, _ids(given, None)))


def checked(model: Model, sample: Sample) -> Sample:
    """The sample; a TextError where its ids are not the model's, or nothing is left to score."""
    last = len(model.vocabulary) - 1
    for place, id in enumerate(sample.ids):
        if not 0 <= id <= last:
            raise TextError(
                _("this token id is not the model's"),
                where=_("text {name}").format(name=sample.name),
                expected=_("ids from 0 to {last}").format(last=last),
                found=_("{token} at position {place}").format(token=id, place=place),
            )
    if not 1 <= sample.first < len(sample.ids):
        raise TextError(
            _("there is no token to score in this text"),
            where=_("text {name}").format(name=sample.name),
            expected=_("a token before the first one that is scored"),
            found=_("{count} tokens, of which {prompt} are the prompt").format(
                count=len(sample.ids), prompt=sample.first
            )
            if sample.first > 1
            else _("one token")
            if len(sample.ids) == 1
            else _("no token"),
        )
    context = model.spec.context
    if context is not None and len(sample.ids) - 1 > context:
        raise TextError(
            _("the text is too long for this model"),
            where=_("text {name}").format(name=sample.name),
            expected=_("at most {count} tokens").format(count=context + 1),
            found=str(len(sample.ids)),
            hint=_("cut the text into pieces"),
        )
    return sample


def _of_mapping(model: Model, given: Mapping[str, Any], name: str) -> Sample:
    """A sample of an object: its prompt and completion, its text, or its ids."""
    said = _value(given, NAME)
    name = name if said is None else str(said)
    first = _value(given, FIRST)
    begin = 1 if first is None else _one_id(first, "first")
    ids, prompt_ids = _value(given, IDS), _value(given, PROMPT_IDS)
    completion_ids = _value(given, COMPLETION_IDS)
    if completion_ids is not None and prompt_ids is not None:
        before = _ids(prompt_ids, "prompt_ids")
        after = _ids(completion_ids, "completion_ids")
        return Sample(name, (*before, *after), len(before))
    if ids is not None:
        return Sample(name, _ids(ids, "ids"), begin, _words(_value(given, TEXT)))
    if (completion := _value(given, COMPLETION)) is not None:
        prompt = _text(_value(given, PROMPT), "prompt")
        return _prompted(model, prompt, _text(completion, "completion"), name)
    if (text := _value(given, TEXT)) is not None:
        return Sample(name, _read(model, _text(text, "text")), begin, text)
    if _value(given, MESSAGES) is not None:
        raise TextError(
            _("byhand does not put messages into a chat template"),
            expected=_("the tokens that the engine read"),
            found="messages",
            hint=_("tokenizer.apply_chat_template(messages) gives ids, for the key ids"),
        )
    keys = ", ".join(map(repr, list(given)[:8])) or _("nothing")
    hint = next(filter(None, (nearest(str(key), KNOWN) for key in given)), None)
    expected = _("a prompt and a completion, a text, or ids")
    raise TextError(_("there is no text here"), expected=expected, found=keys, hint=hint)


def _prompted(model: Model, prompt: str, completion: str, name: str) -> Sample:
    """A prompt and what follows.  The tokens are those of the whole text, where the prompt's own
    tokens stand at its start; else the two are read apart, as an engine goes on from a prompt."""
    whole = prompt + completion
    if not prompt:
        return Sample(name, _read(model, whole), text=whole)
    before, both = _read(model, prompt), _read(model, whole)
    if both[: len(before)] != before:
        both = (*before, *model.vocabulary.plain(completion))
    return Sample(name, both, max(1, len(before)), whole)


def _read(model: Model, text: str) -> tuple[int, ...]:
    return tuple(model.read(text))


def _value(given: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value of the first of these keys that is there."""
    return next((given[name] for name in names if given.get(name) is not None), None)


def _words(text: Any) -> str | None:
    return text if isinstance(text, str) else None


def _text(value: Any, key: str) -> str:
    if isinstance(value, str):
        return value
    raise TextError(
        _("{key} is not a text").format(key=key),
        expected=_("a text"),
        found=_("nothing") if value is None else repr(value)[:40],
    )


def _whole(entry: Any) -> bool:
    return hasattr(entry, "__index__") and not isinstance(entry, bool)


def _one_id(entry: Any, key: str) -> int:
    if _whole(entry):
        return index(entry)
    raise TextError(
        _("{key} is not a whole number").format(key=key),
        expected=_("a whole number"),
        found=repr(entry)[:40],
    )


def _ids(given: Any, key: str | None) -> tuple[int, ...]:
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        entries = list(given)
        if all(map(_whole, entries)):
            return tuple(map(index, entries))
    raise TextError(
        _("{key} is not a list of token ids").format(key=key or _("the text")),
        expected=_("a list of whole numbers"),
        found=repr(given)[:40],
    )
