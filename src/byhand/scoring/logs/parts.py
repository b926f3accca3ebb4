"""Parts of a logged text: the tokens of a prompt or of a completion, and how parts are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from byhand.language import _
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import LoggedText, Token, Top, logged_text


@dataclass
class Part:
    """Tokens that stand one after the other, each with the number that was logged for it."""

    values: list[float | None]
    ids: list[int] | None = None
    pieces: list[str | bytes] | None = None
    top: list[Top | None] | None = None
    findings: list[Finding] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    def then(self, other: Part) -> Part:
        """The two parts as one; ids, or pieces, that only one of them has are left out."""
        if not len(self) or not len(other):
            whole = self if len(self) else other
            return replace(whole, findings=self.findings + other.findings)
        return Part(
            self.values + other.values,
            None if self.ids is None or other.ids is None else self.ids + other.ids,
            None if self.pieces is None or other.pieces is None else self.pieces + other.pieces,
            _tops(self, other),
            self.findings + [found.later(len(self)) for found in other.findings],
        )


def _tops(one: Part, other: Part) -> list[Top | None] | None:
    if one.top is None and other.top is None:
        return None
    return (one.top or [None] * len(one)) + (other.top or [None] * len(other))


def bare_prompt(ids: Sequence[int]) -> Part:
    """A prompt whose tokens are known and were not scored."""
    return Part([None] * len(ids), ids=list(ids))


def text_of_parts(
    name: str,
    where: str,
    prompt: Part | None,
    completion: Part | None,
    *,
    whole: bool | None = None,
    text: str | None = None,
) -> LoggedText:
    """The text of a prompt, as far as it was logged, and of what follows it.

    Where the prompt has no tokens in common form with the completion, it is left out.
    """
    if prompt is not None and completion is not None:
        joined = prompt.then(completion)
        if joined.ids is None and joined.pieces is None:
            joined, prompt = completion, None
    else:
        joined = completion or prompt or Part([])
    prompt_length = None if completion is None else 0 if prompt is None else len(prompt)
    return logged_text(
        name,
        where,
        joined.values,
        ids=joined.ids,
        pieces=joined.pieces,
        text=text,
        whole=prompt is not None if whole is None else whole,
        prompt_length=prompt_length,
        top=joined.top,
        findings=joined.findings,
    )


def not_among(place: int, where: str, top: Top, token: Token) -> Finding:
    """The finding that a token was not logged, since it is not among the likeliest ones."""
    least = min(top.values(), default=float("nan"))
    return Finding(
        "top only",
        _("The log has the likeliest tokens only, and the token of the text is not among them."),
        _("token {token}; the least of the {count} has {value:.4g}").format(
            token=repr(token), count=len(top), value=least
        ),
        where,
        place,
    )
