"""A property in sentences: which texts, what must hold, and for which weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.language import _, whole

MANY = 3  # texts of a list that are named one by one


def of_property(source: Mapping[str, Any], count: int | None) -> str:
    """The sentences of a property's plain tree; `count` texts, or more than anybody can count."""
    claims = source.get("claim")
    claims = claims if isinstance(claims, list) else [claims]
    texts = _texts(source, count)
    first, *rest = (_claim(claim) for claim in claims)
    said = [_("{texts}, {claim}.").format(texts=texts, claim=first)]
    said += [_("For all these texts, {claim}.").format(claim=claim) for claim in rest]
    return " ".join([*said, *_weights(source)])


# --------------------------------------------------------------------------- texts


def _texts(source: Mapping[str, Any], count: int | None) -> str:
    texts = source.get("texts")
    counted = _counted(count)
    if texts is None:  # those of a table
        return _("After each of the {count} texts of the table").format(count=whole(count or 0))
    if isinstance(texts, str):
        texts = {"pattern": texts}
    elif isinstance(texts, list):
        texts = {"list": texts}
    if "list" in texts:
        return _listed(texts["list"])
    if "pattern" in texts:
        pattern = texts["pattern"]
        shown = _or([_code(one) for one in ([pattern] if isinstance(pattern, str) else pattern)])
        where = _where(texts)
        if where:
            return _("After every text {pattern} with {where}{counted}").format(
                pattern=shown, where=where, counted=counted
            )
        return _("After every text {pattern}{counted}").format(pattern=shown, counted=counted)
    of = texts.get("of")
    shown = "" if of is None else _(" of {tokens}").format(tokens=_tokens(of))
    if "up to" in texts:
        return _("After every text of up to {length} tokens{of}{counted}").format(
            length=texts["up to"], of=shown, counted=counted
        )
    return _("After every text of {length} tokens{of}{counted}").format(
        length=texts["length"], of=shown, counted=counted
    )


def _counted(count: int | None) -> str:
    if count is None:
        return ""
    if count == 1:
        return _(" (one text)")
    return _(" ({count} texts)").format(count=whole(count))


def _listed(texts: list[str]) -> str:
    if len(texts) == 1:
        return _("After the text {text}").format(text=_code(texts[0]))
    if len(texts) <= MANY:
        return _("After the texts {texts}").format(texts=_and([_code(text) for text in texts]))
    return _("After each of {count} texts, from {first} to {last}").format(
        count=whole(len(texts)), first=_code(texts[0]), last=_code(texts[-1])
    )


def _where(texts: Mapping[str, Any]) -> str:
    """The variables and conditions."""
    parts = []
    for name, values in texts.get("where", {}).items():
        if isinstance(values, list):
            said = _("{name} one of {values}").format(name=_code(name), values=", ".join(values))
        elif ".." in values and " in " not in values:
            said = _("{name} from {least} to {most}").format(
                name=_code(name),
                least=values.partition("..")[0].strip(),
                most=values.partition("..")[2].strip(),
            )
        elif values in texts.get("groups", {}):
            said = _("{name} one of {values}").format(name=_code(name), values=values)
        else:
            said = _code(f"{name} = {values}")
        parts.append(said)
    conditions = texts.get("conditions", [])
    parts += map(_code, [conditions] if isinstance(conditions, str) else conditions)
    return _and(parts)


# --------------------------------------------------------------------------- claims


def _claim(claim: Any) -> str:
    claim = {claim: ""} if isinstance(claim, str) else claim
    if "next" in claim:
        return _("the next token is {answer}").format(answer=_answer(claim["next"]))
    if "continuation" in claim:
        return _("the greedy continuation is {answer}").format(
            answer=_answer(claim["continuation"], several=True)
        )
    if "lead" in claim:
        return _lead(claim["lead"])
    if "at" in claim:
        return _bounds(claim)
    if "same as" in claim:
        return _("the prediction is the same as that of {model}").format(
            model=_file(claim["same as"])
        )
    if "constant" in claim:
        return _("the prediction is always the same")
    return _("the prediction does not move")


def _answer(answer: Any, several: bool = False) -> str:
    if isinstance(answer, str):
        return _built_in(answer, {}) if answer in _BUILT_IN else _code(answer)
    if isinstance(answer, list):
        return ", ".join(map(_code, answer)) if several else _or([_code(one) for one in answer])
    ((key, value), *_rest) = answer.items()
    if key == "table":
        return _("what the table says")
    if key == "file":
        return _("what {file} says").format(file=_code(value))
    if key in ("token", "expression"):
        return _code(value)
    return _built_in(key, value if isinstance(value, Mapping) else {"of": value} if value else {})


_BUILT_IN = ("copy", "sorted", "sum", "parity", "count", "majority")


def _built_in(name: str, settings: Mapping[str, Any]) -> str:
    usual = {"sum": _("its numbers"), "parity": _("its numbers"), "sorted": _("its tokens"),
             "majority": _("its tokens")}.get(name, _("the text"))  # fmt: skip
    of = _tokens(settings["of"]) if "of" in settings else usual
    counting = _tokens(settings["counting"]) if "counting" in settings else ""
    match name:
        case "copy":
            said = _("a copy of {of}").format(of=of)
        case "sorted" if settings.get("descending") == "true":
            said = _("{of}, sorted from the largest down").format(of=of)
        case "sorted":
            said = _("{of}, sorted").format(of=of)
        case "sum" if "modulo" in settings:
            said = _("the sum of {of} modulo {modulo}").format(of=of, modulo=settings["modulo"])
        case "sum" if "digits" in settings:
            said = _("the sum of {of} in {count} digits").format(of=of, count=settings["digits"])
            if settings.get("backwards") == "true":
                said = _("{said}, the last digit first").format(said=said)
        case "sum":
            said = _("the sum of {of}").format(of=of)
        case "parity" if counting:
            said = _("the parity of how often {token} stands in {of}").format(token=counting, of=of)
        case "parity":
            said = _("the parity of the sum of {of}").format(of=of)
        case "count":
            said = _("how often {token} stands in {of}").format(token=counting, of=of)
        case _:
            said = _("the majority of {of}").format(of=of)
            if "tie" in settings:
                said = _("{said}, or {token} in a tie").format(
                    said=said, token=_code(settings["tie"])
                )
    if "then" in settings:
        said = _("{said}, then {tokens}").format(said=said, tokens=_tokens(settings["then"]))
    return said


def _lead(lead: Mapping[str, Any]) -> str:
    over, by = lead.get("over", "others"), lead.get("by", "0")
    if over == "others":
        return _("the logit of {of} leads all others by at least {by}").format(
            of=_answer(lead["of"]), by=by
        )
    return _("the logit of {of} leads that of {over} by at least {by}").format(
        of=_answer(lead["of"]), over=_answer(over), by=by
    )


def _bounds(claim: Mapping[str, Any]) -> str:
    at = _code(claim["at"])
    least, most = claim.get("at least"), claim.get("at most")
    if least is not None and most is not None:
        return _("{number} lies between {least} and {most}").format(
            number=at, least=least, most=most
        )
    if most is not None:
        return _("{number} is at most {most}").format(number=at, most=most)
    return _("{number} is at least {least}").format(number=at, least=least)


# --------------------------------------------------------------------------- weights


def _weights(source: Mapping[str, Any]) -> list[str]:
    """For which weights and embeddings it must hold."""
    said = []
    weights = source.get("weights", {})
    words = ("printed", "within", "known to", "rounded to")
    if weights and not any(word in weights for word in words):
        for name, known in weights.items():
            said.append(_known(known, name))
    elif weights:
        said.append(_known(weights, _tokens(weights["of"]) if "of" in weights else ""))
    if "embeddings" in source:
        said.append(
            _("It must hold wherever each entry of an embedding is moved by at most {by}.").format(
                by=source["embeddings"]["within"]
            )
        )
    return said


def _known(known: Mapping[str, Any], name: str) -> str:
    of = _(" of {tokens}").format(tokens=name) if name else ""
    if "printed" in known:
        return _(
            "It must hold for all weights{of} that print as the model's with {places} decimals."
        ).format(of=of, places=known["printed"])
    if "within" in known:
        return _("It must hold for all weights{of} within {by} of the model's.").format(
            of=of, by=known["within"]
        )
    if "known to" in known:
        return _("It must hold for all weights{of} that round to the model's in {format}.").format(
            of=of, format=known["known to"]
        )
    return _("The weights{of} are rounded to {format}.").format(of=of, format=known["rounded to"])


# --------------------------------------------------------------------------- words


def _code(text: Any) -> str:
    return f"`{text}`"


def _file(value: Any) -> str:
    return str(value.get("file", "")) if isinstance(value, Mapping) else str(value)


def _tokens(value: Any) -> str:
    return ", ".join(map(_code, value)) if isinstance(value, list) else _code(value)


def _and(parts: list[str]) -> str:
    return _joined(parts, _("{first} and {last}"))


def _or(parts: list[str]) -> str:
    return _joined(parts, _("{first} or {last}"))


def _joined(parts: list[str], two: str) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return two.format(first=", ".join(parts[:-1]), last=parts[-1])
