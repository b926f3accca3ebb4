"""The checker's decisions: whether a case of a certificate is right, for all texts or for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

from flint import arb, ctx, fmpq

from byhand.language import _
from byhand.proving.claims import Agree, AtLeast, Lead, Next, Same, Unmoved
from byhand.proving.domain import Shape, Varies, Whole
from byhand.proving.properties import Property
from byhand.verifying.areas import Area, held
from byhand.verifying.network import Network, Row
from byhand.verifying.numbers import Form, Number, Wrong, ends, middle

BITS = (128, 512)  # of balls; the second for single texts that are close
RATIONAL = 0  # in place of bits
MOST_CUTS = 200  # of one case, beyond those of the certificate
FEW = 64  # texts that are decided one by one rather than cut
TOGETHER = 500  # texts whose beginnings are worked out once


class Case(NamedTuple):
    """A leaf of a certificate, with some of its texts where each is decided on its own."""

    goal: int
    where: str
    allowed: Mapping[str, Sequence[int]]
    leaf: Mapping[str, Any]
    start: int = 0
    stop: int | None = None

    @property
    def lead(self) -> fmpq | None:
        """The lead that the leaf says, if any."""
        said = Fraction(self.leaf["lead"]) if "lead" in self.leaf else None
        return None if said is None else fmpq(said.numerator, said.denominator)


class Found(NamedTuple):
    """Two numbers between which a lead lies, and whether the claim certainly holds or fails."""

    low: Number
    high: Number
    holds: bool
    fails: bool = False
    letters: Sequence[Any] = ()  # that move the lead, those that move it most first

    def right(self, lead: fmpq | None) -> bool:
        """Whether the claim certainly holds, with this lead."""
        return self.holds and (lead is None or bool(self.low >= lead))

    def wrong(self, lead: fmpq | None) -> bool:
        """Whether it certainly does not."""
        return self.fails or (lead is not None and bool(self.high < lead))


class Checker:
    """Decides the cases of one property.  `same` is the token that all its texts must share."""

    def __init__(self, property: Property, same: int | None = None) -> None:
        self.property, self.same = property, same
        self.words = property.model.outputs.tokens
        self._networks: dict[tuple[int, int], Network] = {}

    def check(self, case: Case) -> None:
        """Raises `Wrong` if a case is not right."""
        area = Area(self.property.goals[case.goal].shape, case.allowed)
        if case.leaf["by"] == "letters":
            self._check_area(case, area)
            return
        texts = islice(area.assignments(), case.start, case.stop)
        while some := list(islice(texts, TOGETHER)):
            if case.leaf["by"] == "none":
                raise Wrong(_("there is a text: {text}").format(text=self._told(case, some[0])))
            self._check_texts(case, some)

    def _check_area(self, case: Case, area: Area) -> None:
        """Decides an area in one pass; where that is too wide, the area is cut again."""
        todo, left = [area], MOST_CUTS
        while todo:
            area = todo.pop()
            try:
                found = self._over(case, area)
                if found.right(case.lead):
                    continue
                blamed = [name for key in found.letters for name in _variables(key, area.shape)]
            except Varies as varies:
                blamed = list(varies.names)
            if area.box <= FEW:
                self._check_texts(case, list(area.assignments()))
                continue
            left -= 1
            if left < 0:
                raise Wrong(_("this case cannot be decided"))
            widest = sorted(area.allowed, key=lambda name: -len(area.allowed[name]))
            name = next(name for name in (*blamed, *widest) if len(area.allowed[name]) > 1)
            half = area.allowed[name][: len(area.allowed[name]) // 2]
            todo.extend(part for part in area.cut(name, half) if not part.empty)

    def _over(self, case: Case, area: Area) -> Found:
        """What one pass of each model finds for all texts of an area."""
        asked = self._asked(case, area.variables)
        with ctx.workprec(BITS[0]):
            networks = self._models(case, BITS[0])
            return self._found(case, networks, [one.area(area)[0] for one in networks], 0, asked)

    def _check_texts(self, case: Case, texts: list[dict[str, int]]) -> None:
        """Decides each text: where it is close, with more bits, and at last in rationals."""
        places = self.property.goals[case.goal].shape.places
        for bits in (*BITS, RATIONAL):
            ids = [tuple(p.tokens[held(p, one)] for p in places) for one in texts]
            with ctx.workprec(bits or BITS[-1]):
                networks = self._models(case, bits)
                logits = [network.texts(ids) for network in networks]
                close = []
                for n, assigned in enumerate(texts):
                    asked = self._asked(case, assigned)
                    found = self._found(case, networks, [rows[n] for rows in logits], n, asked)
                    if found.right(case.lead):
                        continue
                    if bits == RATIONAL or found.wrong(case.lead):
                        raise Wrong(
                            _("{text}: the lead is at most {most}").format(
                                text=self._told(case, assigned),
                                most=f"{float(middle(found.high)):.6g}",
                            )
                        )
                    close.append(assigned)
            if not close:
                return
            texts = close
        raise AssertionError  # rationals decide, or raise

    def _asked(self, case: Case, values: Mapping[str, Any]) -> tuple[list[int], list[int]]:
        """The tokens that may lead and those that must be behind; of a bound, the index alone."""
        claim, every = self.property.goals[case.goal].claim, range(len(self.words))
        behind = None
        match claim:
            case AtLeast(index=index):
                return [int(place) for place in index.call(values)], []
            case Next(answers=answers):
                ahead = [int(id) for id in answers.call(values)]
            case Lead(ahead=one, behind=other):
                ahead = [int(one.call(values))]
                behind = None if other is None else [int(other.call(values))]
            case Same():
                ahead = [-1 if self.same is None else self.same]
            case _:
                ahead, behind = list(every), list(every)
        if behind is None:
            behind = [id for id in every if id not in ahead]
        if "next" in case.leaf or (case.leaf["by"] == "letters" and not isinstance(claim, Lead)):
            next = case.leaf.get("next", [])
            said = [id for id in ahead if [self.words[id]] == next]
            if not said:
                raise Wrong(
                    _("the certificate says {said}, the property asks for {asked}").format(
                        said=", ".join(next) or _("nothing"),
                        asked=", ".join(self.words[id] for id in ahead),
                    )
                )
            ahead = said
        return ahead, behind

    def _found(
        self,
        case: Case,
        networks: Sequence[Network],
        logits: Sequence[Row],
        text: int,
        asked: tuple[list[int], list[int]],
    ) -> Found:
        """How far one token, the same in all models, is before all that must be behind it."""
        claim, (ahead, behind) = self.property.goals[case.goal].claim, asked
        if isinstance(claim, AtLeast):
            share = networks[0].share(claim.address, ahead, text) - networks[0].number(claim.bound)
            low, high = ends(-share if claim.most else share)
            return Found(low, high, bool(low >= 0), bool(high < 0), _movers(share))
        front = max(ahead, key=lambda token: middle(logits[0][token]))
        apart = [(row[front] - row[id], id) for row in logits for id in behind if id != front]
        if not apart:
            return Found(arb.pos_inf(), arb.pos_inf(), True)
        both = [(*ends(one), id) for one, id in apart]
        by, strict = networks[0].zero, True
        if isinstance(claim, Lead):
            by, strict = networks[0].number(claim.by), False
        worst = min(range(len(both)), key=lambda n: both[n][0])
        return Found(
            both[worst][0],
            min(high for _low, high, _id in both),
            all(low > by or (low >= by and (not strict or front < id)) for low, _high, id in both),
            any(high < by for _low, high, _id in both),
            _movers(apart[worst][0]),
        )

    def _models(self, case: Case, bits: int) -> list[Network]:
        """The models that a claim is about, ready for passes at a precision."""
        claim, models = self.property.goals[case.goal].claim, [self.property.model]
        if isinstance(claim, Agree):
            models.append(claim.other)
        if isinstance(claim, Unmoved):
            models.append(self.property.own)
        found = []
        for n, model in enumerate(models):
            if (id(model), bits) not in self._networks:
                moved = Fraction(0) if n else self.property.moved
                self._networks[id(model), bits] = Network(model, moved, bits == RATIONAL)
            found.append(self._networks[id(model), bits])
            found[-1].everywhere = isinstance(claim, AtLeast)
        return found

    def first_prediction(self, case: Case) -> int | None:
        """The token that most likely comes after the first text of a case, if it has one."""
        places = self.property.goals[case.goal].shape.places
        area = Area(self.property.goals[case.goal].shape, case.allowed)
        for one in area.assignments():
            ids = tuple(p.tokens[held(p, one)] for p in places)
            with ctx.workprec(BITS[0]):
                (logits,) = self._models(case, BITS[0])[0].texts([ids])
            return max(range(len(logits)), key=lambda token: middle(logits[token]))
        return None

    def _told(self, case: Case, assigned: Mapping[str, int]) -> str:
        tokens, shape = self.property.model.vocabulary.tokens, self.property.goals[case.goal].shape
        return " ".join(tokens[place.tokens[held(place, assigned)]] for place in shape.places)


def _movers(x: Number) -> list[Any]:
    """The letters of a form, those that move it most first."""
    letters = x.letters if isinstance(x, Form) else {}
    return sorted(letters, key=lambda key: -float(abs(letters[key]).upper()))


def _variables(letter: Any, shape: Shape) -> Sequence[str]:
    """The variables that a letter stands for; none for one of a weight."""
    if isinstance(letter, str):
        return [letter]
    value = shape.places[letter[0]].value if isinstance(letter[0], int) else None
    return value.names if isinstance(value, Whole) else ()
