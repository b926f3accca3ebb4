"""The report on scored texts: its title and its sections, in reading order."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

from byhand.document import words
from byhand.document.compose.score.likenesses import findings, next_look
from byhand.document.compose.score.plots import plots
from byhand.document.compose.score.saying import (
    LONGEST,
    LONGEST_ON_PAGE,
    amount,
    in_context,
    nats,
    share,
    standing_word,
    true_value,
)
from byhand.document.parts import Column, Grid, LeftOut, Part, Section, Title
from byhand.language import _
from byhand.scoring.scored import Against, Scored, ScoredToken
from byhand.scoring.standings import SPREADS, STANDINGS, Standings
from byhand.scoring.summaries import QUANTILES, Summary

SHOWN, SHOWN_ON_PAGE = 40, 400  # tokens that are listed one by one
SHOWN_QUANTILES = (0, 2, 4)  # places in QUANTILES


def title(scored: Scored) -> Title:
    """The model, what was scored, and what the true values are."""
    truth = scored.truth
    mean = -float(truth.logprobs.mean())
    facts = [
        (_("texts"), words.whole(len(scored.scores))),
        (_("tokens"), words.whole(len(truth))),
        (_("true values"), _numbers(scored)),
        (_("mean loss"), _("{loss} nats a token").format(loss=amount(mean, 6))),
        (_("perplexity"), amount(exp(mean), 6) if mean < 700 else "∞"),
    ]
    return Title(words.printable(scored.model.name), words.told(scored.model.about), tuple(facts))


def _numbers(scored: Scored) -> str:
    truth = scored.truth
    if not truth.proven:
        return _("those of byhand's own {format} run: nothing is proven").format(
            format=truth.numbers
        )
    worst = float(truth.radii.max())
    open_ = int((~truth.best_proven).sum())
    text = _("proven, each within {radius}").format(radius=amount(worst, 1))
    if open_:
        text += ", " + _("the likeliest token of {count} is open").format(count=open_)
    return text


def sections(scored: Scored, *, drawn: bool = True) -> Iterator[Section]:
    """The sections; with plots where they are to be drawn."""
    if scored.engines or scored.own is not None:
        yield Section("engines", _("The errors"), _about_errors(), tuple(_engines(scored)))
    if scored.engines:
        found = tuple(findings(scored, each) for each in scored.against)
        yield Section("likeness", _("What the errors look like"), _about_likeness(), found)
        look = [part for each in scored.against for part in next_look(scored, each)]
        if look:
            yield Section("next", _("Where to look next"), _about_next(), tuple(look))
    if scored.standings is not None:
        about = _about_standings(scored.standings)
        if not scored.truth.proven:
            about += " " + _(
                "Open: a run in floats stands for the truth, so no likeliest token is proven. "
                "With --digits they are."
            )
        heading = _("Can rounding change the likeliest token?")
        yield Section("standings", heading, about, tuple(_standings(scored)))
    if drawn and (pictures := tuple(plots(scored))):
        yield Section("plots", _("The errors in pictures"), "", pictures)
    worst = tuple(_worst(scored, each, drawn) for each in scored.against if each.summary.count)
    if worst:
        yield Section("worst", _("The largest errors"), _about_worst(), worst)
    yield Section("tokens", _("The tokens"), _about_tokens(scored), tuple(_tokens(scored, drawn)))


# ------------------------------------------------------------------ the engines


def _engines(scored: Scored) -> Iterator[Part]:
    """The numbers of each engine, and of each two."""
    each = [(against.name, against.summary) for against in scored.against]
    if scored.own is not None:
        each.append((_("byhand in {format}").format(format=scored.format), scored.own))
    yield _errors_grid(_("In nats"), each)
    yield _ratios_grid(_("Ratios of probabilities: true over logged"), each)
    pairs = [(f"{one.name} − {other.name}", found) for one, other, found in scored.pairs]
    if pairs:
        yield _errors_grid(_("One engine less another"), pairs)
        yield _ratios_grid(_("Ratios of probabilities: the second over the first"), pairs)


def _errors_grid(title: str, each: list[tuple[str, Summary]]) -> Grid:
    quantiles = [f"{100 * QUANTILES[place]:g} %" for place in SHOWN_QUANTILES]
    heads = [_("tokens"), _("bias"), _("deviation"), *quantiles, _("largest")]
    rows = tuple(
        (
            words.printable(name), _logged(s), nats(s.bias), amount(s.deviation),
            *(nats(s.quantiles[place]) for place in SHOWN_QUANTILES), amount(s.largest),
        )
        for name, s in each
    )  # fmt: skip
    columns = (Column(""), *(Column(head, "number") for head in heads))
    return Grid(title, columns, rows, note=_missing(each))


def _logged(found: Summary) -> str:
    return words.whole(found.count)


def _missing(each: list[tuple[str, Summary]]) -> str:
    told = [
        _("{engine} lacks {count}").format(engine=name, count=words.whole(s.missing))
        for name, s in each
        if s.missing
    ]
    told += [
        _("{engine} calls {count} impossible (−∞)").format(
            engine=name, count=words.whole(s.impossible)
        )
        for name, s in each
        if s.impossible
    ]
    return "; ".join(told)


def _ratios_grid(title: str, each: list[tuple[str, Summary]]) -> Grid:
    eps = each[0][1].eps
    clipped = _("outside 1 ± {eps}").format(eps=f"{eps:g}")
    heads = ["k1", "k2", "k3", clipped]
    rows = tuple(
        (words.printable(name), nats(s.k1), amount(s.k2), amount(s.k3), share(s.clipped))
        for name, s in each
    )
    columns = (Column(""), *(Column(head, "number") for head in heads))
    return Grid(title, columns, rows)


def _about_errors() -> str:
    return _("An error is what was logged less the true log-probability.")


def _about_next() -> str:
    return _("byhand check finds the first step of a dump that rounding does not explain.")


def _about_worst() -> str:
    return _("Each token stands behind the few before it.")


def _about_tokens(scored: Scored) -> str:
    if scored.engines:
        return _("The true ln p of each token, and the errors of the engines.")
    return _("The true ln p of each token.")


def _about_likeness() -> str:
    return _(
        "The spread of the errors is compared with that of byhand's own run of the same tokens in "
        "each format. Between half and twice as wide counts as alike."
    )


# ------------------------------------------------------------------ the likeliest tokens


def _standings(scored: Scored) -> Iterator[Part]:
    under = scored.standings
    assert under is not None
    each = [(_("byhand in {format}").format(format=scored.format), under)]
    each += [
        (_("{engine}, as {format}").format(engine=a.name, format=a.standings.format), a.standings)
        for a in scored.against
        if a.standings is not None
    ]
    heads = [standing_word(standing) for standing in reversed(STANDINGS)]
    rows = tuple(
        (words.printable(name), *(words.whole(own.count(s)) for s in reversed(STANDINGS)))
        for name, own in each
    )
    columns = (Column(""), *(Column(head, "number") for head in heads))
    yield Grid(_("The likeliest token at each place"), columns, rows)


def _about_standings(under: Standings) -> str:
    return _(
        "Safe: the margin is more than {spread}, the usual spread of {format}, so its rounding "
        "does not change the likeliest token. The usual spread is {count} robust standard "
        "deviations of the change of the margin in byhand's own run."
    ).format(spread=amount(under.spread), format=under.format, count=SPREADS)


# ------------------------------------------------------------------ tokens


def _worst(scored: Scored, against: Against, drawn: bool) -> Grid:
    longest = LONGEST_ON_PAGE if drawn else LONGEST
    rows = tuple(
        (
            f"{token.text} [{token.position}]", in_context(scored, token, longest),
            true_value(scored, token), nats(token.errors[against.name]),
            amount(token.margin), _standing(against, token),
        )
        for token in scored.worst(against)
    )  # fmt: skip
    columns = (
        Column(_("token")), Column(""), Column(_("true"), "number"), Column(_("error"), "number"),
        Column(_("margin"), "number"), Column(""),
    )  # fmt: skip
    return Grid(_("The largest errors of {engine}").format(engine=against.name), columns, rows)


def _standing(against: Against, token: ScoredToken) -> str:
    """Whether the engine says another token there, as far as its log tells."""
    own = against.standings
    return standing_word(token.standing if own is None else own.of(token.place))


def _tokens(scored: Scored, drawn: bool) -> Iterator[Part]:
    """Each token, as far as there is room."""
    most = SHOWN_ON_PAGE if drawn else SHOWN
    shown = [scored.token(place) for place in range(min(most, len(scored.truth)))]
    names = [against.name for against in scored.against]
    columns = (
        Column(_("token")), Column(""), Column(_("true"), "number"),
        *(Column(words.printable(name), "number") for name in names),
        Column(_("rank")), Column(_("margin"), "number"), Column(""),
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    text = None
    for token in shown:
        if token.text != text and len(scored.scores) > 1:
            rows.append((token.text,))
        text = token.text
        rows.append(_row(scored, token, names, drawn))
    yield Grid(_("ln p of each token"), columns, tuple(rows))
    left = len(scored.truth) - len(shown)
    if left:
        yield LeftOut(_("{count} more tokens: --json has them all").format(count=words.whole(left)))


def _row(scored: Scored, token: ScoredToken, names: list[str], drawn: bool) -> tuple[str, ...]:
    """A token; where engines fill the lines of a terminal, the likelier one is left out."""
    return (
        str(token.position),
        words.printable(token.token),
        true_value(scored, token),
        *(nats(token.errors[name]) for name in names),
        _rank(scored, token) if drawn or not names else words.whole(token.rank),
        amount(token.margin),
        standing_word(token.standing),
    )


def _rank(scored: Scored, token: ScoredToken) -> str:
    """The rank, and before another token than the likeliest this one."""
    rank = words.whole(token.rank)
    if token.best == token.id:
        return rank
    return f"{rank} < {words.printable(scored.model.vocabulary.tokens[token.best])}"
