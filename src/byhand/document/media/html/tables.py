"""Tables that are read rather than worked in: what comes next, counts, shapes, registers, claims.

Tables of numbers that are worked out are in `parts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from byhand.document import words
from byhand.document.media.html import strips
from byhand.document.media.html.numbers import Inscriber, register_mark
from byhand.document.media.html.prose import MARKS, left_out, prose, sentence
from byhand.document.numerals import localised
from byhand.document.parts import (
    Candidates,
    ParameterTable,
    Predictions,
    RegisterMap,
    ShapeTable,
    StatisticsTable,
)
from byhand.document.verdict_parts import VerdictLine, VerdictTable
from byhand.document.words import whole
from byhand.language import _

# ------------------------------------------------------------------ what comes next


def predictions(part: Predictions, pen: Inscriber) -> Iterator[str]:
    """After each position, the next token; its address leads to its line."""
    heads = (_("after"), _("next token"), "")
    yield from _table_head("predictions", heads, part.address)
    for found in part.predictions:
        token = escape(found.token or "?")
        sign = "✓" if found.proven else ""
        yield (
            f"<tr{pen.here(f'{part.address}[{found.position}]')}>"
            f'<th scope="row">{escape(found.label)}</th><td class="token">{token}</td>'
            f'<td><span class="proven" aria-hidden="true">{sign}</span>'
            f" {prose(sentence(found.sentence))}</td></tr>"
        )
    yield "</tbody></table></div>"
    if part.left_out:
        yield left_out(_("left out: {what}").format(what=part.left_out))


def candidates(part: Candidates, pen: Inscriber) -> Iterator[str]:
    """The words that may come next, with a bar for how likely they are."""
    heads = (_("word"), _("logit"), _("probability"), "")
    title = _("after {label}").format(label=part.label)
    yield from _table_head("candidates", heads, title)
    for found in part.candidates:
        kind = ' class="target"' if found.target else ""
        aim = f' <span class="aim">{escape(_("target"))}</span>' if found.target else ""
        bar = f'<i style="--share:{found.share:.4f}"></i>'
        yield (
            f'<tr{kind}><th scope="row">{escape(found.token)}{aim}</th>{pen.number(found.logit)}'
            f'{pen.number(found.probability)}<td class="bar" aria-hidden="true">{bar}</td></tr>'
        )
    yield "</tbody></table></div>"
    if part.left_out:
        yield left_out(_("left out: {what}").format(what=part.left_out))


# ------------------------------------------------------------------ counts and shapes


def parameter_table(part: ParameterTable) -> Iterator[str]:
    """Every component with its formula, this model's numbers in it, and its count."""
    if part.symbols:
        yield from facts(
            (f"{symbol} = {whole(value)}", meaning) for symbol, value, meaning in part.symbols
        )
    heads = (_("component"), _("formula"), _("with numbers"), _("count"), _("share"))
    yield from _table_head("parameters", heads, _("the parameters"))
    for line in part.lines:
        layers = ""
        if len(line.layers) > 1:
            text = _("in {count} layers: {total}").format(
                count=len(line.layers), total=whole(line.total)
            )
            layers = f'<span class="quiet"> {escape(text)}</span>'
        names = "".join(f"<code>{escape(name)}</code>" for name in line.tensors)
        yield (
            f'<tr><th scope="row">{escape(line.part)}<span class="tensors">{names}</span></th>'
            f'<td class="maths">{escape(line.formula)}</td>'
            f'<td class="maths">{escape(line.numbers)}</td>'
            f'<td class="count">{whole(line.count)}{layers}</td>'
            f'<td class="bar"><i style="--share:{line.share:.4f}"></i>'
            f'<span class="sr">{round(line.share * 100)} %</span></td></tr>'
        )
    yield "</tbody><tfoot>"
    for address, text, count in part.totals:
        yield (
            f'<tr data-a="{escape(address)}"><th scope="row" colspan="3">{escape(text)}</th>'
            f'<td class="count">{whole(count)}</td><td></td></tr>'
        )
    yield "</tfoot></table></div>"


def shape_table(part: ShapeTable) -> Iterator[str]:
    """Steps without their numbers."""
    heads = (_("step"), _("formula"), _("shape"), _("entries"))
    yield from _table_head("shapes", heads, _("shapes"))
    for line, times in zip(part.lines, part.times, strict=True):
        often = f" × {times}" if times > 1 else ""
        formula = words.formula_text(line.formula)
        yield (
            f'<tr><th scope="row"><code class="address">{escape(line.address)}</code>{often}</th>'
            f"<td>{escape(formula)}</td><td>{escape(words.axes_text(line.axes, line.shape))}</td>"
            f'<td class="count">{whole(line.entries)}</td></tr>'
        )
    yield "</tbody></table></div>"
    if part.left_out:
        yield left_out(_("left out: {what}").format(what=part.left_out))


def statistics_table(part: StatisticsTable) -> Iterator[str]:
    """What large tensors are like."""
    heads = (
        _("tensor"),
        _("shape"),
        _("least"),
        _("greatest"),
        _("mean"),
        _("deviation"),
        _("zeros"),
        _("furthest from 0"),
    )
    yield from _table_head("statistics", heads, _("statistics"))
    for line in part.lines:
        shape = " × ".join(map(whole, line.shape))
        numbers = (line.least, line.greatest, line.mean, line.deviation)
        cells = "".join(
            f'<td class="count">{escape(strips.short_number(number))}</td>' for number in numbers
        )
        yield (
            f'<tr><th scope="row"><code class="address">{escape(line.address)}</code></th>'
            f'<td>{escape(shape)}</td>{cells}<td class="count">{whole(line.zeros)}</td>'
            f'<td><code class="address">{escape(line.largest)}</code></td></tr>'
        )
    yield "</tbody></table></div>"


def register_map(part: RegisterMap) -> Iterator[str]:
    """The whole pass as registers: a row a step, a column a position."""
    yield from _table_head("registers", (_("step"), *part.labels), _("registers"))
    crossed = {"leaves": _("leaves the exact numbers"), "returns": _("is exact again")}
    for line in part.lines:
        cells = ""
        for register, crossing in zip(line.registers, line.crossings, strict=True):
            if register is None:
                cells += f'<td class="unknown">{_unknown()}</td>'
                continue
            sign = MARKS.get(crossing, "")
            told = f'<span class="sr"> {escape(crossed[crossing])}</span>' if crossing else ""
            arrow = f'<span class="crossing" aria-hidden="true">{sign}</span>' if crossing else ""
            square = '<span class="square" aria-hidden="true">■</span>'
            mark = square * (register == "exact") + register_mark(register)
            cells += f'<td class="{register} {crossing}">{mark}{arrow}{told}</td>'
        address = escape(line.address)
        yield f'<tr><th scope="row"><code class="address">{address}</code></th>{cells}</tr>'
    yield "</tbody></table></div>"
    if part.left_out:
        yield left_out(_("left out: {what}").format(what=part.left_out))


def _unknown() -> str:
    return f'<span aria-hidden="true">?</span><span class="sr">{escape(_("unknown"))}</span>'


# ------------------------------------------------------------------ claims and facts


def checked_table(part: VerdictTable) -> Iterator[str]:
    """What a document prints, line by line, with the verdict."""
    heads = (_("verdict"), _("where"), _("printed"), _("follows"))
    yield from _table_head("claims", heads, part.title)
    for line in part.lines:
        yield _checked(line)
    yield "</tbody></table></div>"


def _checked(line: VerdictLine) -> str:
    told = "".join(f"<p>{prose(sentence(text))}</p>" for _kind, text in line.told)
    source = f'<p class="quiet">{escape(line.source)}</p>' if line.source else ""
    more = f'<tr class="told"><td></td><td colspan="3">{told}{source}</td></tr>' if told else ""
    follows = f' data-head="{escape(_("follows"))}"' if line.expected else ""
    return (
        f'<tr class="{line.verdict.lower()}"><td class="verdict"><span class="sign">'
        f"{escape(line.sign)}</span> {escape(line.word)}</td>"
        f'<th scope="row"><code class="address">{escape(line.address)}</code></th>'
        f'<td data-head="{escape(_("printed"))}">{escape(localised(line.claimed))}</td>'
        f"<td{follows}>{escape(localised(line.expected))}</td></tr>"
        f"{more}"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A word and what it is."""
    yield '<dl class="facts">'
    for name, fact in pairs:
        yield f"<div><dt>{escape(name)}</dt><dd>{prose(fact)}</dd></div>"
    yield "</dl>"


def _table_head(kind: str, heads: Iterable[str], caption: str) -> Iterator[str]:
    label = escape(caption)
    yield f'<div class="table {kind}" tabindex="0" role="group" aria-label="{label}"><table>'
    yield f'<caption class="sr">{label}</caption><thead><tr>'
    for head in heads:
        yield f'<th scope="col">{escape(head)}</th>' if head else "<td></td>"
    yield "</tr></thead><tbody>"
