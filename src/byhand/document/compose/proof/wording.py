"""Values, regions, texts and bounds of a proof, in words and figures."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor

from byhand.document import words
from byhand.language import _
from byhand.model import Model
from byhand.numbers.written import with_digits
from byhand.proving.domain import Region, Shape, Values, Whole

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_NUMBERED = re.compile(r"(.*?)([0-9]+)(\]?)")
LEAST_RUN = 3  # neighbouring values that are written as a run: 0…9
MOST_RUNS = 6  # runs and single values in a list
LONGEST_COUNT = 10**15  # whole numbers up to here are written in full
DIGITS = 4  # significant digits of a lead


class Speller:
    """Writes the values of one shape's variables: as tokens where a place spells them.

    `lines` is the variable of a list, which says which of its texts: its values are texts.
    """

    def __init__(self, shape: Shape, model: Model) -> None:
        self.shape, self.model = shape, model
        self.spelled: dict[str, Mapping[int, int]] = {}
        places = 0
        for place in shape.places:
            match place.value:
                case Whole(constant=0, factors=((name, 1),)):
                    self.spelled.setdefault(name, place.tokens)
                    places += self.spelled[name] != place.tokens
        names = [one.name for one in shape.variables]
        self.lines = names[0] if len(names) == 1 and (places or not self.spelled) else None

    def token(self, id: int) -> str:
        """A token as a table shows it."""
        return words.token_label(self.model.vocabulary.tokens[id])

    def answer(self, id: int) -> str:
        """A word that the model answers, as a table shows it."""
        return words.token_label(self.model.outputs.tokens[id])

    def value(self, name: str, value: int) -> str:
        """A value of a variable."""
        if self.lines == name:
            return text_of(self.model, Region(self.shape).text({name: value}))
        id = self.spelled.get(name, {}).get(value)
        return str(value) if id is None else self.token(id)

    def values(self, name: str, values: Values) -> str:
        """Some values of a variable, neighbours as a run: 0…4, 7."""
        return listed([self.value(name, value) for value in values])

    def number(self, number: Whole) -> str:
        """A relation between variables as it is written: s3 − a3."""
        found = ""
        for name, factor in number.factors:
            sign = "−" if factor < 0 else "+" * bool(found)
            times = "" if abs(factor) == 1 else f"{abs(factor)}·"
            found += f" {sign} {times}{name}" if found else f"{sign}{times}{name}"
        if number.constant and found:
            found += f" {'−' if number.constant < 0 else '+'} {abs(number.constant)}"
        return found or str(number.constant)

    def region(self, region: Region, names: Collection[str]) -> str:
        """The values of these variables: a = 3, b = 0…4."""
        told = {name: self.values(name, region.allowed[name]) for name in names}
        return "; ".join(equations(told))

    def assigned(self, values: Mapping[str, int]) -> str:
        """One value for each variable."""
        told = {name: self.value(name, value) for name, value in values.items()}
        return "; ".join(equations(told))


def equations(told: Mapping[str, str]) -> Iterator[str]:
    """Each variable with its values; neighbours that have the same ones together.

    >>> list(equations({"a": "3", "s0": "0…9", "s1": "0…9", "s2": "0…9"}))
    ['a = 3', 's0…s2 = 0…9']
    """
    run: list[str] = []
    for name, values in (*told.items(), ("", "")):
        if run and not (told[run[-1]] == values and _beside(run[-1], name)):
            own = told[run[0]]
            if len(run) >= LEAST_RUN:
                run = [f"{run[0]}…{run[-1]}"]
            yield from (f"{one} = {own}" for one in run)
            run = []
        run.append(name)


def _beside(one: str, other: str) -> bool:
    """Whether two variables are numbered one after the other, up or down: s3 and s2."""
    a, b = (_NUMBERED.fullmatch(name) for name in (one, other))
    return a is not None and b is not None and a[1] == b[1] and abs(int(a[2]) - int(b[2])) == 1


def example(region: Region) -> tuple[int, ...]:
    """A text of a region, the first where each variable in turn takes its least value."""
    assigned = region.first()
    return () if assigned is None else region.text(assigned)


def text_of(model: Model, ids: Sequence[int]) -> str:
    """A text as it is written; by its tokens where it would show nothing."""
    text = model.vocabulary.decode(ids)
    if text.strip():
        return words.printable(text)
    return " ".join(words.token_label(model.vocabulary.tokens[id]) for id in ids)


def listed(labels: Sequence[str]) -> str:
    """Labels with runs of neighbours shortened, and long lists too.

    >>> listed(["0", "1", "2", "3", "7"]), listed(["A", "B", "C"]), listed(["(", ")"])
    ('0…3, 7', 'A…C', '( )')
    """
    found = list(_runs(labels))
    signs = not all(label.isalnum() for label in labels) and not any(" " in one for one in labels)
    comma = " " if signs else ", "  # a comma beside a sign would look like one more
    shown = found if len(found) <= MOST_RUNS else found[: MOST_RUNS - 1]
    text = comma.join(
        run[0] + "…" + run[-1] if len(run) >= LEAST_RUN else comma.join(run) for run in shown
    )
    if len(shown) < len(found):
        more = sum(map(len, found[len(shown) :]))
        text += ", " + _("{count} more").format(count=words.whole(more))
    return text


def _runs(labels: Sequence[str]) -> Iterator[list[str]]:
    run: list[str] = []
    for label in labels:
        if run and not _follows(run[-1], label):
            yield from [run] if len(run) >= LEAST_RUN else ([one] for one in run)
            run = []
        run.append(label)
    yield from [run] if len(run) >= LEAST_RUN else ([one] for one in run)


def _follows(one: str, other: str) -> bool:
    """Whether a label is the one after another: 7 and 8, c and d."""
    if one.isdecimal() and other.isdecimal():
        return int(other) == int(one) + 1
    same = one.isalpha() and other.isalpha() and one.isupper() == other.isupper()
    return same and len(one) == len(other) == 1 and ord(other) == ord(one) + 1


# ------------------------------------------------------------------ figures


def counted(count: int) -> str:
    """A whole number, in full or by its leading digits: 2,000; 10²⁰; 1.9·10²².

    >>> counted(2000), counted(10**20), counted(19 * 10**21)
    ('2,000', '10²⁰', '1.9·10²²')
    """
    if count <= LONGEST_COUNT:
        return words.whole(count)
    power = len(str(count)) - 1
    leading = f"{count / 10**power:.3f}".rstrip("0").rstrip(".")
    return f"{leading}·10{str(power).translate(_RAISED)}".removeprefix("1·")


def at_least(lead: Fraction) -> str:
    """A lower bound in a few digits, rounded down so that it stays one.

    >>> at_least(Fraction(1, 3)), at_least(Fraction(1, 4)), at_least(Fraction(-2, 3))
    ('0.3333', '0.25', '-0.6667')
    """
    if not lead:
        return "0"
    exponent = _exponent(lead)
    digits = floor(lead * Fraction(10) ** (DIGITS - 1 - exponent))
    if abs(digits) == 10**DIGITS:
        digits, exponent = digits // 10, exponent + 1
    text = with_digits(digits, DIGITS, exponent)
    number, mark, power = text.partition("e")
    short = number.rstrip("0").rstrip(".") if "." in number else number
    return short + mark + power


def _exponent(number: Fraction) -> int:
    """The power of ten of its first digit."""
    size = abs(number)
    found = len(str(size.numerator)) - len(str(size.denominator))
    return found if size >= Fraction(10) ** found else found - 1


def seconds(time: float) -> str:
    """A span of time."""
    if time < 0.0995:
        return _("{count} ms").format(count=max(1, round(time * 1000)))
    if time < 99.5:
        return _("{count} s").format(count=f"{time:.3g}" if time < 1 else f"{time:.1f}")
    if time < 5970:
        return _("{count} min").format(count=round(time / 60))
    return _("{count} h").format(count=f"{time / 3600:.1f}")


def share(part: Fraction) -> str:
    """A share of the domain in per cent, never rounded up to all of it.

    >>> share(Fraction(1)), share(Fraction(99999, 100000)), share(Fraction(1, 8))
    ('100 %', '99.99 %', '12.5 %')
    """
    if part == 1:
        return "100 %"
    hundredths = floor(part * 10_000)
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + " %"
