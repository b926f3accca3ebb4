"""Python and the command line take the same options: the same answer, or a refusal in the same
words."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import byhand as library
from byhand.errors import ByhandError
from calling import Outcome

NUMBERS: Mapping[str, Any] = {
    "exact": True, "digits": 5, "decimals": 3, "float": "float32", "device": "cpu",
}  # fmt: skip
CLAIMS = Path(__file__).parent.parent / "docs" / "examples" / "claims" / "tiny-worked.yaml"


def every_choice() -> Iterator[dict[str, Any]]:
    """All ways to say something about the numbers; torch is not asked to work."""
    for count in range(len(NUMBERS) + 1):
        for names in combinations(NUMBERS, count):
            alone = set(names) <= {"device", "float"} and "device" in names
            if not alone and set(names) != {"digits", "device"}:
                yield {name: NUMBERS[name] for name in names}


def arguments(options: Mapping[str, Any]) -> list[str]:
    """The options as they are typed."""
    typed = []
    for name, value in options.items():
        dashed = "--" + name.replace("_", "-")
        typed += [dashed] if value is True else [dashed, str(value)]
    return typed


def refusal(error: ByhandError) -> str:
    return plain(str(error))


def plain(text: str) -> str:
    """The first line of a refusal, without the dashes of the command line."""
    return re.sub(r"--(?=[a-z])", "", text.removeprefix("error: ").splitlines()[0])


def in_python(work: Callable[..., Any], **options: Any) -> tuple[str | None, Any]:
    """The refusal, or the answer."""
    try:
        return None, work("tiny", **options)
    except ByhandError as error:
        return refusal(error), None


def typed(byhand: Callable[..., Outcome], *call: str) -> tuple[str | None, str]:
    done = byhand(*call)
    if done.status == 2:
        return plain(done.err), ""
    assert done.status in (0, 1), done.err
    return None, done.out


def traced(model: str, **options: Any) -> Any:
    from byhand.document.media.json.trace import write_json

    only = (options["only"],) if "only" in options else ()
    return _json(lambda *given: write_json(*given, only), library.trace(model, **options))


def generated(model: str, **options: Any) -> Any:
    from byhand.document.media.json.results import generation_data

    generation = library.generate(model, **options)
    list(generation)
    return generation_data(generation)


def explained(model: str, **options: Any) -> Any:
    from byhand.document.media.json.explanation import document_of
    from byhand.document.media.json.records import write_document

    return _json(write_document, document_of(library.explain(model, **options)))


def checked(model: str, **options: Any) -> Any:
    from byhand.document.media.json.marking import write_json

    return _json(write_json, library.check(model, CLAIMS, **options))


def _json(write: Callable[..., None], what: Any) -> Any:
    text = io.StringIO()
    write(what, text)
    return json.loads(text.getvalue())


def assert_the_same(
    byhand: Callable[..., Outcome],
    command: str,
    work: Callable[..., Any],
    options: Mapping[str, Any],
    *further: str,
) -> bool:
    """Whether there is an answer, the same from both, rather than a refusal in the same words."""
    refused, answer = in_python(work, **options)
    also, out = typed(byhand, command, "tiny", *further, *arguments(options), "--json")
    assert refused == also, options
    if refused is None:
        assert json.loads(out) == json.loads(json.dumps(answer)), options
    return refused is None


@pytest.mark.parametrize(
    "options", list(every_choice()), ids=lambda each: " ".join(each) or "nothing"
)
def test_what_is_said_about_the_numbers(
    options: dict[str, Any], byhand: Callable[..., Outcome]
) -> None:
    if not {"digits", "float"} <= set(options):  # there `byhand trace` compares two traces
        assert_the_same(byhand, "trace", traced, options)
    elif len(options) == 2:
        assert in_python(traced, **options)[0] == "digits and float exclude each other"
    assert_the_same(byhand, "generate", generated, {"count": 2, **options})
    assert_the_same(byhand, "explain", explained, options)


WORDS = {
    "exact": {"exact": True}, "digits 5": {"digits": 5}, "decimals 3": {"decimals": 3},
    "float32": {"float": "float32"}, "bfloat16": {"float": "bfloat16"},
    "digits 0": {"digits": 0}, "digits 1001": {"digits": 1001}, "digits many": {"digits": "many"},
    "digits 4.5": {"digits": "4.5"}, "digits -4": {"digits": "-4"}, "decimals -1": {"decimals": -1},
    "decimals 1001": {"decimals": 1001}, "decimals ٣": {"decimals": "٣"},
}  # fmt: skip


@pytest.mark.parametrize("others", [*every_choice()], ids=lambda each: " ".join(each) or "alone")
@pytest.mark.parametrize("word", WORDS)
def test_a_word_says_what_the_option_says(
    word: str, others: dict[str, Any], byhand: Callable[..., Outcome], tmp_path: Path
) -> None:
    """`numbers="digits 5"` is `--digits 5`, alone and beside any other options."""
    meant = WORDS[word]
    if set(meant) & set(others):
        kind = next(iter(meant))
        refused = f"numbers and {kind} exclude each other"
        for work in (traced, generated, explained):
            assert in_python(work, numbers=word, **others)[0] == refused
        return
    options = {**meant, **others}
    if set(options) >= {"digits", "float"}:
        spelled = in_python(traced, **options)[0]
        assert in_python(traced, numbers=word, **others)[0] == spelled is not None
        return
    if "device" in options and set(options) <= {"digits", "float", "device"}:
        return  # torch is not asked to work
    for command, work, more in (
        ("trace", traced, {}), ("generate", generated, {"count": 1}), ("explain", explained, {}),
    ):  # fmt: skip
        refused, answer = in_python(work, numbers=word, **others, **more)
        also, out = typed(byhand, command, "tiny", *arguments({**options, **more}), "--json")
        assert refused == also
        if refused is None:
            assert json.loads(out) == json.loads(json.dumps(answer))
    refused, _paths = in_python(library.book, out=tmp_path / "one", numbers=word, **others)
    out = ("--out", str(tmp_path / "two"))
    also, _out = typed(byhand, "book", "tiny", *out, *arguments(options))
    assert refused == also
    assert written(tmp_path / "one") == written(tmp_path / "two")


def written(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in folder.glob("*")}


@pytest.mark.parametrize("options", [*every_choice()][1:], ids=lambda each: " ".join(each))
def test_claims_are_checked_in_no_numbers_of_choice(
    options: dict[str, Any], byhand: Callable[..., Outcome]
) -> None:
    refused, _answer = in_python(checked, **options)
    also, _out = typed(byhand, "check", "tiny", str(CLAIMS), *arguments(options))
    assert refused == also == f"there is no option {next(iter(options))}"
    for word in WORDS:
        assert in_python(checked, numbers=word)[0] == "there is no option numbers"


@pytest.mark.parametrize(
    "options",
    [
        {"digits": 0}, {"digits": 1001}, {"digits": "many"}, {"decimals": -1},
        {"decimals": 1_000_000_000}, {"decimals": 2.5}, {"float": "float31"}, {"float": "tf32"},
    ],
    ids=str,
)  # fmt: skip
def test_values_that_do_not_fit(options: dict[str, Any], byhand: Callable[..., Outcome]) -> None:
    for command, work in (("trace", traced), ("generate", generated), ("explain", explained)):
        assert_the_same(byhand, command, work, options)
        assert in_python(work, **options)[0] is not None


@pytest.mark.parametrize(
    "options",
    [
        {"count": 0}, {"count": 2, "top_k": 0}, {"count": 2, "top_p": 2}, {"temperature": 0},
        {"count": 2, "temperature": 1, "seed": 3}, {"count": 2, "seed": 3},
        {"count": 2, "top_k": 2, "seed": 1}, {"count": 1, "temperature": 1, "digits": 4, "seed": 1},
    ],
    ids=str,
)  # fmt: skip
def test_how_a_text_goes_on(options: dict[str, Any], byhand: Callable[..., Outcome]) -> None:
    assert_the_same(byhand, "generate", generated, options)


@pytest.mark.parametrize(
    "options",
    [
        {"alone": True}, {"alone": True, "against": "b"}, {"token": "c", "against": "b"},
        {"token": "b", "against": "b"}, {"position": 0}, {"position": 7}, {"token": "z"},
        {"neurons": True, "keys": True}, {"length": 1},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_explained(options: dict[str, Any], byhand: Callable[..., Outcome]) -> None:
    assert_the_same(byhand, "explain", explained, options)


@pytest.mark.parametrize(
    "options", [{}, {"target": "c"}, {"target": "z"}, {"precision": "decimals:3"},
                {"precision": "float31"}, {"text": "b a"}], ids=str,
)  # fmt: skip
def test_what_is_checked(options: dict[str, Any], byhand: Callable[..., Outcome]) -> None:
    assert_the_same(byhand, "check", checked, options, str(CLAIMS))


WALKED: Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "trace": (traced, {
        "target": "c", "only": "block.0.attn", "heads": True, "exact": True, "digits": 5,
        "decimals": 3, "float": "float32",
    }),
    "generate": (generated, {
        "count": 2, "temperature": 2, "top_k": 2, "top_p": 0.5, "seed": 3, "exact": True,
        "digits": 4, "decimals": 3, "float": "bfloat16",
    }),
    "explain": (explained, {
        "position": 0, "token": "c", "against": "b", "alone": True, "neurons": True, "keys": True,
        "length": 1, "exact": True, "digits": 4, "decimals": 3, "float": "float64",
    }),
    "check": (checked, {
        "text": "b a", "target": "c", "precision": "decimals:3", "exact": True, "digits": 4,
        "decimals": 3, "float": "float32", "device": "cpu",
    }),
    "book": (library.book, {
        "target": "c", "at": "logits[0,0]", "worksheet": True, "blanks": 4, "seed": 2,
        "ask": "values", "exact": True, "digits": 4, "decimals": 3, "float": "float32",
    }),
}  # fmt: skip


def some_of(options: Mapping[str, Any], most: int) -> Iterator[dict[str, Any]]:
    """Every choice of so many options, at most; what is drawn is drawn with a seed."""
    for count in range(most + 1):
        for names in combinations(options, count):
            drawn = {"temperature", "top_k", "top_p"} & set(names)
            if not drawn or "seed" in names:
                yield {name: options[name] for name in names}


@pytest.mark.parametrize("command", WALKED)
def test_every_choice_of_options_is_answered_or_refused_alike(
    command: str, byhand: Callable[..., Outcome], tmp_path: Path
) -> None:
    work, known = WALKED[command]
    outcomes = {True: 0, False: 0}
    for place, options in enumerate(some_of(known, 2 if command in ("book", "explain") else 3)):
        if command == "trace" and {"digits", "float"} <= set(options):
            continue  # there `byhand trace` compares two traces
        further = [str(CLAIMS)] if command == "check" else []
        if command != "book":
            answered = assert_the_same(byhand, command, work, options, *further)
            outcomes[answered] += 1
            continue
        if len(options) > 1 and place % 9:
            continue  # a book takes long
        one, two = tmp_path / f"{place}a", tmp_path / f"{place}b"
        refused, _paths = in_python(work, out=one, **options)
        also, _out = typed(byhand, "book", "tiny", "--out", str(two), *arguments(options))
        assert refused == also, options
        assert written(one) == written(two), options
        outcomes[refused is None] += 1
    assert min(outcomes.values()) > 3


def test_without_claims_the_document_is_checked(byhand: Callable[..., Outcome]) -> None:
    from byhand.document.media.json.marking import write_json

    done = byhand("check", "abc-walkthrough", "--json")
    assert json.loads(done.out) == _json(write_json, library.check("abc-walkthrough"))
    opened = library.open_model("abc-walkthrough")
    assert json.loads(done.out) == _json(write_json, library.check(opened))
    with pytest.raises(ByhandError) as refused:
        library.check("tiny")
    told = byhand("check", "tiny").err
    assert plain(told).lower() == refusal(refused.value)
    assert "abc-walkthrough, journey, minigpt" in told
    assert "abc-walkthrough, journey, minigpt" in str(refused.value)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"decimals": 3}, {"digits": 4}, {"exact": True, "decimals": 2},
        {"digits": 4, "float": "float32"}, {"blanks": 4}, {"seed": 4}, {"ask": "values"},
        {"worksheet": True, "blanks": 4, "seed": 2, "ask": "values,counts"},
        {"worksheet": True, "blanks": 0}, {"worksheet": True, "ask": "colours"}, {"target": "z"},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_published(
    options: dict[str, Any], byhand: Callable[..., Outcome], tmp_path: Path
) -> None:
    said = dict(options)
    if "ask" in said:
        said["ask"] = said["ask"].split(",")
    refused, _paths = in_python(library.book, out=tmp_path / "one", **said)
    also, _out = typed(byhand, "book", "tiny", "--out", str(tmp_path / "two"), *arguments(options))
    assert refused == also
    one, two = written(tmp_path / "one"), written(tmp_path / "two")
    assert one == two
    assert bool(one) == (refused is None)
