"""Changes of positions: which ones, their angles, their pairs, tables that were learned."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import torch
from torch import Tensor

from benchmarks.planted.port import Port
from benchmarks.unlisted.changes.handles import after, before, exchanged, inside, with_row
from benchmarks.unlisted.changes.registry import FLOAT32, change
from benchmarks.unlisted.changes.words import LAST_ROW, channel, head, places, zero

TURNED, K_TURNED = "block.0.attn.q_rotated", "block.0.attn.k_rotated"
FIRST = {"": TURNED, "gpt2": "embed.position"}
PLACES = r"(positions?|places?|angles?|turn|rotat|rope|stride|spac)"


def _rates(port: Port, wrong: Callable[[Tensor], Tensor]) -> None:
    """Angles from changed rates, one for each pair."""

    def cos_and_sin(width: int) -> tuple[Tensor, Tensor]:
        pairs = torch.arange(0, width, 2, dtype=torch.float32)
        angles = port.places.to(torch.float32)[:, None] * wrong(1.0 / port.base ** (pairs / width))
        return angles.cos().to(port.dtype), angles.sin().to(port.dtype)

    port.instead(cos_and_sin=cos_and_sin)


@change(
    "positions with a stride of 2",
    FIRST,
    "llama gpt2",
    rf"{PLACES}.*({{2}}|twice|doubl|every (other|second))",
    rf"({{2}}|twice|doubled).*{PLACES}",
)
def positions_doubled(port: Port) -> None:
    port.places = 2 * port.places


@change(
    "positions divided by 4 (linear scaling)",
    TURNED,
    "llama gpt_neox",
    rf"{PLACES}.*({{4}}|{{0.25}}|quarter)",
    rf"({{4}}|{{0.25}}|quarter).*{PLACES}",
)
def positions_quartered(port: Port) -> None:
    port.places = port.places / 4


@change(
    "NTK scaling by 8",
    {"": TURNED},
    "llama gpt_neox",
    r"base.*({5383000}|{160000})",
    r"ntk",
    r"({5383000}|{160000}).*base",
)
def ntk_scaling(port: Port) -> None:
    port.base *= 8 ** (port.turning / (port.turning - 2))


@change(
    "the last two pairs do not turn",
    TURNED,
    "llama qwen",
    r"pairs?.*\b6\b.*\b7\b",
    r"last (2|two) pairs",
    r"(6|14).*(7|15).*(not turn|unturned|not rotat|angle 0|rate 0)",
    where=r"(entries|channels|pairs?|columns).*(6|7|14|15)\b",
)
def last_pairs_unturned(port: Port) -> None:
    _rates(port, lambda rates: torch.where(torch.arange(len(rates)) < len(rates) - 2, rates, 0.0))


@change(
    "slow pairs slowed by 8, as Llama 3.1 does",
    TURNED,
    "llama",
    r"(pairs?|rates?|frequenc|angles?).*({8}|{0.125})",
    r"({8}|{0.125}).*(pairs?|rates?|frequenc|angles?)",
    r"llama.?3",
    where=r"(entries|channels|pairs?|columns).*\b4\b",
)
def slow_pairs_slower(port: Port) -> None:
    _rates(port, lambda rates: torch.where(torch.arange(len(rates)) < 4, rates, rates / 8))


@change(
    "turned vectors 1.1386 times as long (YaRN's factor on both)",
    TURNED,
    "llama gpt_neox",
    "{1.1386}",
    r"{1.13863}",
    r"yarn",
)
def yarn_magnitude(port: Port) -> None:
    usual = port.cos_and_sin
    factor = 0.1 * log(4) + 1
    port.instead(cos_and_sin=lambda width: tuple(each * factor for each in usual(width)))


@change(
    "positions one less, but 0 stays 0",
    FIRST,
    "qwen gpt2",
    rf"{PLACES}.*(−1|- ?1|one less|before|lower|shift|off by (1|one)|previous|twice|{{0}}.*{{1}})",
)
def position_0_twice(port: Port) -> None:
    port.places = (port.places - 1).clamp(min=0)


@change(
    "positions at most 8",
    FIRST,
    "gpt_neox gpt2",
    rf"{PLACES}.*({{8}})",
    rf"({{8}}).*{PLACES}",
    r"clamp",
    where=r"(rows|positions) 9\b",
)
def positions_clamped(port: Port) -> None:
    port.places = port.places.clamp(max=8)


@change(
    "positions start again at 8",
    FIRST,
    "llama gpt2",
    rf"{PLACES}.*(restart|again|modulo|mod |repeat|from 0)",
    r"(rows?|positions?).*{8}.*({0}|restart|again)",
    r"−8|- ?8\b|{-8}",
    where=r"(rows|positions).*(8) (to|–|-|\.\.) ?15",
)
def positions_restart(port: Port) -> None:
    port.places = port.places % 8


@change(
    "the last position one too far",
    FIRST,
    "llama gpt2",
    r"(15|last).*({16}|one|1 )",
    where=LAST_ROW,
)
def last_position_off(port: Port) -> None:
    port.places = torch.cat((port.places[:-1], port.places[-1:] + 1))


@change(
    "head 5 of q is not turned",
    TURNED,
    "qwen llama",
    rf"{head(5)}.*(not turn|unturned|not rotat|no rope|without|not applied)",
    rf"(not turn|unturned|not rotat|no rope|not applied).*{head(5)}",
    where=head(5),
)
def one_head_unturned(port: Port) -> None:
    after(port, "attn.q_rotated", lambda q: _with_head(port, q, 5, port.kept))


def _with_head(port: Port, turned: Tensor, number: int, kept: dict[str, Tensor]) -> Tensor:
    plain = [value for name, value in kept.items() if name.endswith(".attn.q")][-1]
    return with_row(turned, number, plain[number], 0)


@change(
    "cosine and sine exchanged", TURNED, "llama gpt_neox", r"cos.*sin|quarter turn|90|π/2|{1.5708}"
)
def cos_for_sin(port: Port) -> None:
    usual = port.cos_and_sin
    port.instead(cos_and_sin=lambda width: usual(width)[::-1])


@change("q turned twice", TURNED, "qwen", r"twice|again", rf"{PLACES}.*{{2}}", rf"{{2}}.*{PLACES}")
def q_turned_twice(port: Port) -> None:
    after(port, "attn.q_rotated", port.turned)


@change(
    "angles rounded to bfloat16",
    TURNED,
    "gpt_neox llama",
    r"(angle|cos|table|rate|frequenc|position).*bfloat16",
    r"bfloat16.*(angle|cos|table|rate|frequenc|position)",
    formats=FLOAT32,
)
def angles_in_bfloat16(port: Port) -> None:
    def cos_and_sin(width: int) -> tuple[Tensor, Tensor]:
        rates = 1.0 / port.base ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
        angles = (port.places[:, None] * rates).bfloat16().float()
        return angles.cos().to(port.dtype), angles.sin().to(port.dtype)

    port.instead(cos_and_sin=cos_and_sin)


@change(
    "rates with half the exponent",
    TURNED,
    "llama gpt_neox",
    r"base.*({707.107}|{100})",
    r"({707.107}|{100}).*base",
    r"exponent",
)
def half_exponent(port: Port) -> None:
    _rates(port, torch.sqrt)


@change(
    "k turned 3 positions ahead of q", K_TURNED, "llama", rf"{PLACES}.*{{3}}", rf"{{3}}.*{PLACES}"
)
def k_ahead(port: Port) -> None:
    usual = port.placed

    def placed(at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, _k, v = usual(at, q, k, v)
        port.places = port.places + 3
        turned = port.keep(f"{at}.k_rotated", port.turned(k))
        port.places = port.places - 3
        return q, turned, v

    port.instead(placed=placed)


@change(
    "pairs mirrored: entry i with width − 1 − i",
    TURNED,
    "llama gpt_neox",
    r"pair.*(mirror|revers|last|15|7)",
    r"(mirror|revers).*(pair|entr|half)",
    r"\b0\b.*(with|and).*(15|7)\b",
)
def pairs_mirrored(port: Port) -> None:
    def turned_whole(x: Tensor) -> Tensor:
        cos, sin = port.cos_and_sin(x.shape[-1])
        a, b = x.chunk(2, dim=-1)
        b = b.flip(-1)
        return torch.cat((a * cos - b * sin, (b * cos + a * sin).flip(-1)), dim=-1)

    port.instead(turned_whole=turned_whole)


@change(
    "rates in reverse order",
    TURNED,
    "qwen",
    r"(rates?|frequenc|pairs?|angles?).*(revers|backward|mirror|other order|slowest first|last)",
)
def rates_reversed(port: Port) -> None:
    _rates(port, lambda rates: rates.flip(0))


@change(
    "the second half of the pairs turns the other way",
    TURNED,
    "llama",
    r"(pairs?|half|entries).*(other way|opposite|backward|sign|negat|−)",
    r"(other way|opposite|backward|sign|negat).*(pairs?|half|entries)",
    where=r"(entries|channels|pairs?|columns).*\b4\b",
)
def half_turns_back(port: Port) -> None:
    _rates(port, lambda rates: torch.where(torch.arange(len(rates)) < 4, rates, -rates))


@change(
    "all of k turned by the last position's angle",
    K_TURNED,
    "gpt_neox",
    r"{15}|last position|same (angle|position)|one (angle|position)|every (row|position)",
)
def k_at_last_position(port: Port) -> None:
    usual = port.placed

    def placed(at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, _k, v = usual(at, q, k, v)
        own, port.places = port.places, torch.full_like(port.places, len(port.ids) - 1)
        turned = port.keep(f"{at}.k_rotated", port.turned(k))
        port.places = own
        return q, turned, v

    port.instead(placed=placed)


@change(
    "q turned in block 1 with base 10× as large",
    "block.1.attn.q_rotated",
    "llama gpt_neox",
    r"base.*({5000000}|{100000})",
    r"({5000000}|{100000}).*base",
)
def base_of_one_block(port: Port) -> None:
    def wrong(usual: object) -> object:
        def cos_and_sin(width: int) -> tuple[Tensor, Tensor]:
            port.base *= 10
            found: tuple[Tensor, Tensor] = usual(width)  # type: ignore[operator]
            port.base /= 10
            return found

        return cos_and_sin

    inside(port, 1, "cos_and_sin", wrong)


@change(
    "learned positions 4 and 5 exchanged",
    "embed.position",
    "gpt2",
    places(4, 5)[0],
    r"position 4 has row 5",
    where=places(4, 5)[1],
)
def positions_exchanged(port: Port) -> None:
    port.places = exchanged(port.places, 4, 5, 0)


@change("learned positions halved", "embed.position", "gpt2", "{0.5}", r"\bhal(f|ved)\b|{2}")
def positions_halved(port: Port) -> None:
    after(port, "embed.position", lambda x: x * 0.5)


@change(
    "one channel of the learned positions is 0",
    "embed.position",
    "gpt2",
    zero(channel(50)),
    where=channel(50),
)
def position_channel_zero(port: Port) -> None:
    after(port, "embed.position", lambda x: with_row(x, 50, 0.0, -1))


@change(
    "learned positions in reverse order",
    "embed.position",
    "gpt2",
    r"revers|backward|mirror|15 ?[−-]|last to first",
)
def positions_reversed(port: Port) -> None:
    port.places = port.places.flip(0)


@change(
    "scores from q before RoPE in head 0",
    "block.0.attn.scores",
    "llama",
    r"(head 0).*(rope|turn|rotat|attn\.q\b)",
    r"(rope|turn|rotat|attn\.q\b).*(head 0)",
    where=head(0),
)
def scores_from_unturned_q(port: Port) -> None:
    def turn(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        plain = [value for name, value in port.kept.items() if name.endswith(".attn.q")][-1]
        return with_row(q, 0, plain[0], 0), k

    before(port, "scores", turn)
