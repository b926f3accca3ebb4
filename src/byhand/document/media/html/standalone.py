"""A self-contained page, without network or library: its head, skip link and foot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from byhand.document.media.html.markup import Markup, element, opening
from byhand.document.media.html.prose import prose
from byhand.document.media.html.style import style, text_of
from byhand.document.media.wording import sentence
from byhand.document.words import SIGNS
from byhand.language import _


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything around the body of a page.

    `styles` and `scripts` are files beside this one, which are written into the page in order.
    `skip` is the skip link: the id of its target, and its words.
    """

    title: str
    styles: tuple[str, ...]
    skip: tuple[str, str] | None = None
    scripts: tuple[str, ...] = ()
    kind: str | None = None  # the class of the whole page

    def page(self, body: Iterable[str]) -> str:
        """The whole page around its body, which is markup."""
        return "\n".join((*self._head(), *body, *self._foot())) + "\n"

    def _head(self) -> Iterator[Markup]:
        yield Markup("<!doctype html>")
        yield opening("html", lang=_("en"), class_=self.kind) + opening("head")
        yield opening("meta", charset="utf-8")
        yield opening("meta", name="viewport", content="width=device-width, initial-scale=1")
        yield opening("meta", name="generator", content="byhand")
        yield opening("link", rel="icon", href="data:,")  # otherwise a browser requests one
        yield element("title", self.title)
        yield element("style", Markup(style(*self.styles)))
        yield Markup("</head><body>")
        if self.skip is not None:
            yield element("a", self.skip[1], class_="skip", href=f"#{self.skip[0]}")

    def _foot(self) -> Iterator[Markup]:
        if self.scripts:
            yield element("script", Markup("".join(map(text_of, self.scripts))))
        yield Markup("</body></html>")


def fact_list(facts: Iterable[tuple[str, str]]) -> Markup:
    """Short facts side by side, each with its name."""
    pairs = (element("dt", name) + element("dd", fact) for name, fact in facts)
    return element("dl", *pairs, class_="facts")


def legend(registers: Iterable[tuple[str, str]]) -> Markup:
    """How to read the numbers: the sign and the promise of each register."""
    lines = (
        element(
            "li",
            element("span", SIGNS.get(name, "") or "1", class_="sample", aria_hidden="true"),
            element("span", Markup(prose(sentence(about)))),
            class_=name,
        )
        for name, about in registers
    )
    heading = element("h2", _("How to read the numbers"))
    return element("section", heading, element("ul", *lines), class_="legend")
