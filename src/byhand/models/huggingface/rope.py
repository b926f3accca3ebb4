"""RoPE as config.json describes it: the keys of each scaling that real models use.

The old keys (rope_theta, rope_scaling) are read as well as the new ones (rope_parameters).  What
the scalings do is in `rope_scaling`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from byhand.errors import InputError, nearest
from byhand.expression import Expression, Number
from byhand.files.mapped import shown
from byhand.language import _
from byhand.models.huggingface.config import LARGEST_NUMBER, LONGEST_CONTEXT, Config
from byhand.rope_scaling import KINDS, Scaling, longrope_magnitude, yarn_magnitude
from byhand.spec import RotarySpec

TYPES = ("default", *(kind for kind in KINDS if kind != "ntk"))  # as config.json calls them
USUAL_BASE = Fraction(10_000)
SMALLEST_BASE = Fraction(11, 10)  # for YaRN, which divides by its logarithm
WIDEST = 65_536  # entries of a head that turn
_FIRST = "original_max_position_embeddings"  # the length the model was first trained for
_SETTINGS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", _FIRST),
    "yarn": ("factor", _FIRST, "attention_factor", "beta_fast", "beta_slow", "mscale",
             "mscale_all_dim", "truncate"),
    "longrope": ("factor", _FIRST, "attention_factor", "short_factor", "long_factor"),
}  # fmt: skip


@dataclass(frozen=True)
class Keys:
    """Where a family has the settings of RoPE, and what it takes where they are missing."""

    base_keys: tuple[str, ...] = ("rope_theta",)
    share_keys: tuple[str, ...] = ("partial_rotary_factor",)
    base: Fraction = USUAL_BASE
    share: Fraction | None = None  # of a head that turns; None: whole heads, and nothing else
    pairing: str = "half"
    context: int = 2048  # where max_position_embeddings is missing
    first_length: int | None = None  # where that key is missing; None: the context
    kinds: tuple[str, ...] = TYPES  # of RoPE that the family has
    older: tuple[tuple[str, str], ...] = ()  # older names of them
    alpha: bool = False  # dynamic RoPE may have a fixed alpha instead of growing with the text


def read_rope(
    config: Config, d_head: int, keys: Keys, table: Config | None = None
) -> RotarySpec | None:
    """The rotation of heads of this width; None where no entry is turned.

    `table` has the settings, where these are not those of all layers.
    """
    table = rope_table(config) if table is None else table
    kind = _kind(table, keys)
    base = _common(config, table, keys.base_keys, "rope_theta", keys.base)
    if base.value <= 0:
        raise base.refuse(_("a number above 0"))
    width = _width(config, table, d_head, keys)
    if width == 0:
        return None
    known = {"type", "rope_type", "rope_theta", "partial_rotary_factor", *_SETTINGS[kind]}
    if keys.alpha and kind == "dynamic" and table.value("alpha", None)[1]:
        kind, known = "ntk", known | {"alpha", *_SETTINGS["yarn"]}  # of which it reads alpha alone
    _only(table, known)
    scaling, magnitude = _Scalings(config, table, keys, width, base).read(kind)
    return RotarySpec(width, base.value, keys.pairing, magnitude=magnitude, scaling=scaling)


def _width(config: Config, table: Config, d_head: int, keys: Keys) -> int:
    """How many entries of each head turn."""
    part = _common(
        config, table, keys.share_keys, "partial_rotary_factor", keys.share or Fraction(1)
    )
    if not 0 <= part.value <= 1:
        raise part.refuse(_("a number from 0 to 1"))
    if keys.share is None and part.value != 1:
        raise part.refuse(_("1, or no such key"))
    # As in the library: the product is rounded as a float, then cut.
    width = int(d_head * float(part.value))
    if width > WIDEST:
        expected = _("heads of at most {count} entries").format(count=f"{WIDEST:,}")
        raise config.refuse("head_dim", expected, width)
    if width % 2:
        expected = _("an even number of entries of each head, which RoPE turns in pairs")
        whole = keys.share is None
        raise config.refuse("head_dim", expected, width) if whole else part.refuse(expected)
    return width


@dataclass(frozen=True)
class _Scalings:
    """The settings of one scaling, and of the model around it."""

    config: Config
    table: Config
    keys: Keys
    width: int
    base: _Said

    def read(self, kind: str) -> tuple[Scaling | None, Expression | None]:
        """The scaling, and the factor of what is turned."""
        match kind:
            case "default":
                return None, None
            case "linear":
                return Scaling("linear", self.table.positive("factor")), None
            case "dynamic":
                return self.dynamic(), None
            case "ntk":
                self.more_pairs()
                return Scaling("ntk", self.table.positive("alpha")), None
            case "llama3":
                return self.llama3(), None
            case "yarn":
                return self.yarn()
        return self.longrope()

    def more_pairs(self) -> None:
        if self.width == 2:
            raise self.table.refuse("rope_type", _("more than one pair, for dynamic RoPE"))

    def dynamic(self) -> Scaling:
        self.more_pairs()
        factor = self.table.positive("factor")
        if factor < 1:
            raise self.table.refuse("factor", _("a number of at least 1"), factor)
        return Scaling("dynamic", factor, length=self.context())

    def llama3(self) -> Scaling:
        low, high = map(self.table.positive, ("low_freq_factor", "high_freq_factor"))
        if low >= high:
            expected = _("more than low_freq_factor, {value}").format(value=shown(low))
            raise self.table.refuse("high_freq_factor", expected)
        factor = self.table.positive("factor")
        return Scaling("llama3", factor, length=self.first_length(), slow=low, fast=high)

    def yarn(self) -> tuple[Scaling, Expression | None]:
        if self.base.value < SMALLEST_BASE:
            least = _("a number of at least {value}").format(value=float(SMALLEST_BASE))
            raise self.base.refuse(least)
        length = self.first_length()
        scaling = Scaling(
            "yarn",
            factor=(factor := self.factor(length)),
            length=length,
            slow=self.optional("beta_slow") or Fraction(1),
            fast=self.optional("beta_fast") or Fraction(32),
            whole=self.table.flag("truncate", True),
        )
        scales = self.optional("mscale"), self.optional("mscale_all_dim")
        return scaling, self.given_magnitude(yarn_magnitude(factor, *scales))

    def longrope(self) -> tuple[Scaling, Expression | None]:
        length = self.first_length()
        if length < 2:
            raise self.table.refuse(_FIRST, _("a whole number of at least 2"), length)
        scaling = Scaling(
            "longrope",
            length=length,
            short_factors=self.factors("short_factor"),
            long_factors=self.factors("long_factor"),
        )
        return scaling, self.given_magnitude(longrope_magnitude(self.factor(length), length))

    # ------------------------------------------------------------------ single keys

    def context(self) -> int:
        return self.config.whole("max_position_embeddings", self.keys.context, most=LONGEST_CONTEXT)

    def first_length(self) -> int:
        """The length the model was first trained for: that of the config, of the table, or now."""
        outer, inner = (at.whole_or_none(_FIRST, most=LONGEST_CONTEXT)
                        for at in (self.config, self.table))  # fmt: skip
        if inner and outer and inner != outer:
            expected = _("the same as {key}, {value}").format(
                key=self.table.prefix + _FIRST, value=inner
            )
            raise self.config.refuse(_FIRST, expected)
        return inner or outer or self.keys.first_length or self.context()

    def factor(self, length: int) -> Fraction:
        """By how much the text may grow: as the table says, else as the two lengths do."""
        if self.table.value("factor", None)[1] is None:
            return Fraction(self.context(), length)
        return self.table.positive("factor")

    def optional(self, key: str) -> Fraction | None:
        """A number that is not negative, where there is one."""
        if self.table.value(key, None)[1] is None:
            return None
        found = self.table.number(key)
        if found < 0:
            raise self.table.refuse(key, _("a number that is not negative"), found)
        return found

    def given_magnitude(self, usual: Expression | None) -> Expression | None:
        """The attention factor of the table, where it has one."""
        if self.table.value("attention_factor", None)[1] is None:
            return usual
        found = self.table.positive("attention_factor")
        return None if found == 1 else Number(found)

    def factors(self, key: str) -> tuple[Fraction, ...]:
        """A factor for each pair."""
        _name, found = self.table.value(key)
        count = self.width // 2
        if not isinstance(found, list) or len(found) != count or not all(map(_above_0, found)):
            raise self.table.refuse(key, _("{count} numbers above 0").format(count=count), found)
        return tuple(map(Fraction, found))


def _above_0(x: Any) -> bool:
    number = isinstance(x, int | Fraction) and not isinstance(x, bool)
    return number and 0 < x <= LARGEST_NUMBER


# ------------------------------------------------------------------ the keys


def rope_table(config: Config) -> Config:
    """The table rope_parameters, or its older name rope_scaling; empty if neither is there."""
    new, old = config.within("rope_parameters"), config.within("rope_scaling")
    if new and old and new.table != old.table:
        raise config.refuse("rope_scaling", _("the same as rope_parameters, or no such key"))
    return new or old or Config(config.path, {})


def _kind(table: Config, keys: Keys) -> str:
    key, found = table.value("rope_type", "default", "type")
    found = dict(keys.older).get(found, found) if isinstance(found, str) else found
    if found not in keys.kinds:
        words = found if isinstance(found, str) else ""
        raise table.refuse(
            key,
            ", ".join(keys.kinds),
            found,
            message=_("byhand does not do RoPE of type {kind}").format(kind=shown(found)),
            hint=nearest(words[:80], keys.kinds),
        )
    return str(found)


@dataclass(frozen=True)
class _Said:
    """A number, and the key that gives it."""

    value: Fraction
    at: Config
    key: str

    def refuse(self, expected: str) -> InputError:
        return self.at.refuse(self.key, expected, self.value)


def _common(
    config: Config, table: Config, beside: tuple[str, ...], inner: str, usual: Fraction
) -> _Said:
    """A setting in the table, or beside it under older names; all must agree."""
    said = [(config, key) for key in beside] + [(table, inner)]
    there = [
        _Said(at.number(key), at, key) for at, key in said if at.value(key, None)[1] is not None
    ]
    if not there:
        return _Said(usual, config, beside[0])
    for other in there[:-1]:
        if other.value != there[-1].value:
            name = there[-1].at.prefix + there[-1].key
            expected = _("the same as {key}, {value}").format(
                key=name, value=shown(there[-1].value)
            )
            raise other.refuse(expected)
    return there[-1]


def _only(table: Config, known: set[str]) -> None:
    """Refuses other settings, whose effect is unknown."""
    for key, value in table.table.items():
        if key not in known and value is not None:
            raise table.refuse(
                key,
                ", ".join(sorted(known)),
                key,
                message=_("byhand does not know this setting of RoPE"),
                hint=nearest(key[:80], known),
            )
