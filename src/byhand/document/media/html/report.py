"""A marking as one HTML page that needs nothing else: no network, no library, no script.

The result on top, the spine as a strip with a cell a line, then what does not follow (or is not
what rounding usually does) with heat maps, worst entries and suspects, then every line in a table.
The style and the little script that reads the heat maps out stand beside this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from math import inf, log10

from byhand.checking.verdicts import Marked, MarkedText, Marking, Verdict
from byhand.document import words
from byhand.document.compose.marked import (
    MOST_SUSPECTS,
    SIGNS,
    UNUSUAL,
    index_text,
    like_text,
    outside_text,
    share_text,
    short_source,
    source_text,
    stage_of,
    suspect_share,
    tally,
    usual_number,
    usual_text,
    verdict_about,
    verdict_word,
)
from byhand.document.compose.runs import Run, folded
from byhand.document.compose.worst_entries import worst_entries
from byhand.document.media.html import heat
from byhand.document.media.html.style import style, text_of
from byhand.document.media.terminal.marking import name_of_text, summary, text_facts
from byhand.document.words import whole
from byhand.language import _

MOST_MAPPED = 24  # lines of a report that have heat maps
MOST_OPEN = 3  # lines of a text that are told at once; the others open at a click
LONGEST_TITLE = 60  # characters of a text in a link


def page(marking: Marking) -> str:
    """The whole report."""
    return "\n".join(_Report(marking).lines()) + "\n"


def notable(line: Marked) -> bool:
    """Whether a line has a part of the page to itself."""
    return line.verdict.follows is False or line.unusual


# ------------------------------------------------------------------ the page


class _Report:
    def __init__(self, marking: Marking) -> None:
        self.marking = marking
        self.alone = len(marking.texts) == 1
        self.maps = MOST_MAPPED  # that may still be drawn

    def lines(self) -> Iterator[str]:
        title = _("{model}: the working marked").format(model=self.marking.model)
        yield "<!doctype html>"
        language, skip = _("en"), _("to the table of all lines")
        yield f'<html lang="{language}">'
        yield '<head><meta charset="utf-8">'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield f"<title>{escape(title)}</title>"
        yield f"<style>\n{style('report.css')}</style></head>"
        yield "<body>"
        yield f'<a class="skip" href="#lines-0">{escape(skip)}</a>'
        yield from self.head()
        yield "<main>"
        for place, text in enumerate(self.marking.texts):
            yield from self.text(place, text)
        yield "</main>"
        yield from self.foot()
        yield f"<script>\n{text_of('report.js')}</script>"
        yield "</body></html>"

    def head(self) -> Iterator[str]:
        tone = _tone(list(self.marking))
        yield f"<header><h1><small>byhand check</small>{escape(self.marking.model)}</h1>"
        yield (
            f'<div class="banner {_kind(tone)}"><span class="sign" aria-hidden="true">'
            f"{SIGNS[tone]}</span><p>{escape(_sentence(summary(self.marking)))}</p></div>"
        )
        if self.alone:
            yield '<dl class="facts">'
            for name, fact in text_facts(self.marking.texts[0]):
                yield f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>"
            yield "</dl>"
        else:
            yield from self.contents()
        yield "</header>"

    def contents(self) -> Iterator[str]:
        """A link to each of several texts."""
        name = escape(_("texts"))
        yield f'<nav aria-label="{name}"><ul class="texts">'
        for place, text in enumerate(self.marking.texts):
            tone = _tone(text.lines)
            name = name_of_text(self.marking, place)
            shown = words.printable(text.text)[:LONGEST_TITLE]
            yield (
                f'<li><a class="{_kind(tone)}" href="#text-{place}">{_sign(tone)} '
                f'{escape(name)} <span class="quiet">{escape(shown)}</span></a></li>'
            )
        yield "</ul></nav>"

    def text(self, place: int, text: MarkedText) -> Iterator[str]:
        yield f'<section class="text" id="text-{place}">'
        if self.alone:
            yield _heading(_("The spine"))
        else:
            yield _heading(name_of_text(self.marking, place))
            yield '<dl class="facts">'
            for name, fact in text_facts(text):
                yield f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>"
            yield "</dl><p></p>"
        yield from _tally(text.lines)
        yield from self.spine(place, text.lines)
        findings = [(number, line) for number, line in enumerate(text.lines) if notable(line)]
        findings.sort(key=lambda pair: pair[1].verdict.follows is not False)  # what is wrong first
        if findings:
            yield _heading(_("What does not follow, or is not usual"))
            if any(line.shares is not None and line.shares.size > 1 for _n, line in findings):
                yield from heat.legend()
        for count, (number, line) in enumerate(findings):
            yield from self.finding(place, number, line, opened=count < MOST_OPEN)
        yield from self.table(place, text.lines)
        yield from _unmatched(text)
        yield "</section>"

    def spine(self, place: int, lines: Sequence[Marked]) -> Iterator[str]:
        """A cell a line, in the order of the spine: its sign, and how much of the bound it uses."""
        name = escape(_("the lines in spine order"))
        yield f'<nav class="spine" aria-label="{name}">'
        numbered = list(enumerate(lines))
        for stage, group in groupby(numbered, key=lambda pair: stage_of(pair[1].claim.address)):
            yield f'<div class="stage"><h3>{escape(stage)}</h3><ol>'
            for number, line in group:
                target = f"finding-{place}-{number}" if notable(line) else f"line-{place}-{number}"
                sign = UNUSUAL if line.unusual else SIGNS[line.verdict]
                told = _told(line)
                yield (
                    f'<li><a class="{_tint(line)}" href="#{target}" title="{escape(told)}"'
                    f' aria-label="{escape(told)}" style="--share:{_height(line.share):.2f}">'
                    f"<i></i>{sign}</a></li>"
                )
            yield "</ol></div>"
        yield "</nav>"

    # -------------------------------------------------------------- a line that is not simply right

    def finding(self, place: int, number: int, line: Marked, opened: bool) -> Iterator[str]:
        kind = _tint(line)
        yield f'<details class="finding {kind}"{" open" if opened else ""}><summary>'
        yield (
            f'{_sign(line)}<h3 class="address">{escape(line.address)}</h3>'
            f'<span class="verdict">{escape(verdict_word(line.verdict))}</span>'
            f'<span class="share">{escape(_share_sentence(line))}</span></summary>'
        )
        yield f'<div id="finding-{place}-{number}">'  # inside, so that a link to it opens it
        if line.verdict.follows is False and (text := outside_text(line)):
            yield f"<p>{escape(_sentence(text))}.</p>"
        if line.unusual:
            yield f"<p>{escape(_sentence(usual_text(line)))}.</p>"
        if line.like is not None:
            yield f"<p><strong>{escape(_sentence(like_text(line)))}.</strong></p>"
        elif line.suspects:
            yield '<ul class="suspects">'
            for suspect in line.suspects[:MOST_SUSPECTS]:
                yield f"<li><strong>{escape(_sentence(suspect.sentence))}</strong>"
                for text in (suspect.change, suspect_share(suspect)):
                    yield f"<small>{escape(_sentence(text))}</small>" if text else ""
                yield "</li>"
            yield "</ul>"
        yield '<div class="evidence">'
        yield from _entries(line)
        if self.maps:
            drawn = list(heat.figure(line))
            self.maps -= bool(drawn)
            yield from drawn
        yield "</div>"
        yield from self.provenance(line)
        yield "</div></details>"

    def provenance(self, line: Marked) -> Iterator[str]:
        """From what it was judged, and where the claim stands."""
        steps = ", ".join(f"<code>{escape(step)}</code>" for step in line.uses)
        if steps:
            text = escape(_("Judged from {steps}, as claimed.")).replace("{steps}", steps)
        else:
            text = escape(_("Judged from the text and the weights."))
        if source := source_text(line):
            text += f" <span>{escape(source)}</span>"
        yield f'<p class="quiet small">{text}</p>'

    # -------------------------------------------------------------- every line

    def table(self, place: int, lines: Sequence[Marked]) -> Iterator[str]:
        yield _heading(_("Every line"), f"lines-{place}")
        shown = list(folded(lines))
        if any(isinstance(each, Run) for each in shown):
            choice = escape(_("show the lines that are folded"))
            yield f'<label class="choice"><input type="checkbox"> {choice}</label>'
        name = escape(_("Every line"))
        yield f'<div class="wide" tabindex="0" role="region" aria-label="{name}"><table>'
        verdict = escape(_("verdict"))
        heads = (
            ("mark", f'<span class="sr">{verdict}</span>'),
            ("", escape(_("line"))),
            ("verdict-column", verdict),
            ("number", escape(_("of allowed"))),
            ("number", escape(_("× usual"))),
            ("worst-column", escape(_("worst entry"))),
        )
        cells = "".join(f'<th scope="col" class="{kind}">{text}</th>' for kind, text in heads)
        yield f"<thead><tr>{cells}</tr></thead><tbody>"
        number = 0
        for each in shown:
            if isinstance(each, Run):
                kind, sign = _kind(each.lines[0].verdict), _sign(each.lines[0].verdict)
                yield f'<tr class="run {kind}"><td class="mark">{sign}</td>'
                yield f'<td colspan="5">… {escape(each.text())}</td></tr>'
            for line in each.lines if isinstance(each, Run) else (each,):
                yield _row(place, number, line, isinstance(each, Run))
                number += 1
        yield "</tbody></table></div>"

    def foot(self) -> Iterator[str]:
        yield "<footer>" + _heading(_("How to read it"))
        yield f"<p>{escape(about())}</p><ul class='tally'>"
        for verdict in Verdict:
            told = escape(verdict_about(verdict))
            yield f'<li class="{_kind(verdict)}">{_sign(verdict)} {told}</li>'
        yield "</ul></footer>"


def about() -> str:
    """What follows means."""
    return _(
        "A line follows if every entry of it lies within what a correct implementation of the "
        "stated precision can give from the lines above it, as they were claimed. How far that is, "
        "is worked out for each entry; the share of it that the worst entry uses is shown, and × "
        "usual says how many times what rounding usually does the differences are."
    )


def _heading(text: str, name: str = "") -> str:
    """A heading; `name` is what links call it."""
    return f'<h2 id="{name}">{escape(text)}</h2>' if name else f"<h2>{escape(text)}</h2>"


def _row(place: int, number: int, line: Marked, foldable: bool) -> str:
    kind, judged = _tint(line), line.verdict is not Verdict.UNJUDGED
    name = f'<span class="address">{escape(line.address)}</span>'
    if notable(line):
        name = f'<a href="#finding-{place}-{number}">{name}</a>'
    if line.reason:
        name += f' <span class="quiet">{escape(line.reason)}</span>'
    share = ""
    if judged:
        bar = f'<span class="bar" style="--share:{_height(line.share):.2f}"></span>'
        share = escape(share_text(line.share)) + bar
    return (
        f'<tr class="{kind}{" foldable" if foldable else ""}" id="line-{place}-{number}">'
        f'<td class="mark">{_sign(line)}</td><td>{name}</td>'
        f'<td class="verdict-column">{escape(verdict_word(line.verdict))}</td>'
        f'<td class="number">{share}</td><td class="number">{usual_number(line)}</td>'
        f'<td class="worst-column address">{index_text(line) if judged else ""}</td></tr>'
    )


def _entries(line: Marked) -> Iterator[str]:
    """The worst entries with their numbers."""
    found = worst_entries(line)
    if not found:
        return
    heads = (_("entry"), _("of allowed"), _("claimed"), _("expected"), _("allowed"))
    yield '<div class="wide numbers"><table class="entries"><thead><tr>'
    for place, head in enumerate(heads):
        yield f'<th scope="col" class="{"number" if place else ""}">{escape(head)}</th>'
    yield "</tr></thead><tbody>"
    for entry in found:
        numbers = (entry.share, entry.claimed, entry.expected, entry.allowed)
        cells = "".join(f'<td class="number">{escape(number)}</td>' for number in numbers)
        yield f'<tr><td class="address">{escape(entry.place)}</td>{cells}</tr>'
    yield "</tbody></table></div>"


def _tally(lines: Sequence[Marked]) -> Iterator[str]:
    yield '<ul class="tally">'
    for verdict, count, word in tally(lines):
        yield f'<li class="{_kind(verdict)}">{_sign(verdict)} {whole(count)} {escape(word)}</li>'
    if count := sum(line.unusual for line in lines):
        text = _("{count} beyond what rounding usually does").format(count=whole(count))
        yield f'<li class="unsupported"><span class="sign">{UNUSUAL}</span> {escape(text)}</li>'
    yield "</ul>"


def _unmatched(text: MarkedText) -> Iterator[str]:
    if not text.unmatched:
        return
    yield _heading(_("Names that were left aside")) + '<ul class="unmatched">'
    for each in text.unmatched:
        hint = " " + _("hint") + f": {each.hint}" if each.hint else ""
        told = escape(f"({short_source(each.source)}): {each.reason}.{hint}")
        yield f"<li><code>{escape(each.name)}</code> {told}</li>"
    yield "</ul>"


# ------------------------------------------------------------------ small words


def _tone(lines: Sequence[Marked]) -> Verdict:
    """The verdict that stands for many lines: the one that matters most.  What was not judged has
    not passed; lines that were left blank do not count."""
    found = {line.verdict for line in lines if not line.blank}
    if any(line.unusual for line in lines):
        found.add(Verdict.UNSUPPORTED)
    for verdict in (Verdict.ERROR, Verdict.UNSUPPORTED, Verdict.UNJUDGED, Verdict.RIGHT):
        if verdict in found:
            return verdict
    return Verdict.UNJUDGED


def _kind(verdict: Verdict) -> str:
    """The class of a verdict in the style."""
    return verdict.name.lower()


def _tint(line: Marked) -> str:
    """The class of a line: what is not usual is warned of, even where it follows."""
    return _kind(Verdict.UNSUPPORTED if line.unusual else line.verdict)


def _sign(marked: Marked | Verdict) -> str:
    if isinstance(marked, Marked):
        text = SIGNS[marked.verdict] + (UNUSUAL if marked.unusual else "")
    else:
        text = SIGNS[marked]
    return f'<span class="sign">{text}</span>'


def _told(line: Marked) -> str:
    """A line in a few words: for who hovers over its cell, or hears it."""
    if line.verdict is Verdict.UNJUDGED:
        return f"{line.address}: {verdict_word(line.verdict)}"
    return f"{line.address}: {verdict_word(line.verdict)}, {_share_sentence(line)}"


def _share_sentence(line: Marked) -> str:
    if line.share == inf:
        return _("beyond what is allowed")
    if line.share > 1:
        text = _("{excess} the allowed error")
        return text.format(excess=share_text(line.share))
    return _("{share} of the allowed error").format(share=share_text(line.share))


def _height(share: float) -> float:
    """A share as the length of a bar, from 0 to 1: four decades, the bound at the end."""
    if not share > 0:
        return 0.0
    return min(max(1 + log10(share) / 4, 0.03), 1.0) if share < inf else 1.0


def _sentence(text: str) -> str:
    """With a capital letter, as sentences on a page begin; addresses stay as they are."""
    first = text.split(" ", 1)[0]
    return text if "." in first or "[" in first else text[:1].upper() + text[1:]
