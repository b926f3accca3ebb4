"""How q, k, v or attention weights were changed before a product reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import fit, spread
from byhand.checking.differences.difference import Reading
from byhand.checking.differences.head_products import Products
from byhand.checking.differences.positions_read import listed, roundest, shown
from byhand.checking.suspects.casts import FLOATS, INT8, INT8_ROWS, bits_of, rounded_to
from byhand.checking.suspects.mistakes import first
from byhand.language import _

Floats = npt.NDArray[np.float64]
MOST_WIDE = 256  # entries of a head whose factors are solved
MOST_EQUATIONS = 20_000
CASTS = ("bfloat16", "float16", "float8_e4m3", "float8_e5m2", INT8, INT8_ROWS)


def changed_inputs(products: Products) -> Iterator[Reading]:
    """The first change of one input that explains the line."""
    for reader in (_some_channels, _lengths, _averaged, _turned_weights, _cast):
        found = list(reader(products))
        if found:
            yield from found
            return


def _explains(products: Products, role: int, other: Floats, heads: Sequence[int] = ()) -> bool:
    """Whether one input replaced explains the line, in all heads or in some."""
    left, right = (products.left_input, other) if role else (other, products.right_input)
    return products.explains(left, spread(right, len(left)), heads or range(len(left)))


def _some_channels(products: Products) -> Iterator[Reading]:
    """q·k without some entries of a head, or with factors on them."""
    q, k = products.left_input, products.spread_right
    width = q.shape[-1]
    if products.name != "scores" or width > MOST_WIDE or products.free:
        return
    heads, rows, columns = np.nonzero(products.there)
    step = max(1, len(heads) // MOST_EQUATIONS)
    at = (heads[::step], rows[::step], columns[::step])
    near = products.room[at]
    terms = q[at[0], at[1]] * k[at[0], at[2]] / near[:, None]
    aim = (products.claimed - products.beside)[at] / near
    if len(aim) < 2 * width:
        return
    factors, _left, rank, _sizes = np.linalg.lstsq(terms, aim, rcond=None)
    if rank < width or not fit(np.abs(terms @ factors - aim)):
        return
    error = np.sqrt(np.diag(np.linalg.inv(terms.T @ terms)))
    use = np.array([roundest(float(a), float(b)) for a, b in zip(factors, error, strict=True)])
    other = np.flatnonzero(np.abs(factors - 1) > 6 * error + 1e-6)
    use = np.where(np.isin(np.arange(width), other), use, 1.0)
    if not len(other) or not _explains(products, 0, q * use):
        return
    names = listed([int(each) for each in other])
    said = _("entry {names} of each head is multiplied by {factors} before q·k")
    if (use[other] == 0).all():
        said = _("q·k leaves out entry {names} of each head")
    told = ", ".join(shown(float(each)) for each in use[other][:4]) + ", …" * (len(other) > 4)
    yield products.edit(
        "channels",
        said.format(names=names, factors=told),
        _("the model sums over all {width} entries").format(width=width),
        _("look for the width of the product q·k"),
        first("q", "weighed", factors=use),
        1 if (use[other] == 0).all() else len(other),
    )


def _lengths(products: Products) -> Iterator[Reading]:
    """Queries or keys that were brought to one length first."""
    if products.name != "scores" or products.free:
        return
    scale = products.attention.scale * products.times
    if not scale:
        return
    own = products.made(products.left_input, products.spread_right) - products.beside
    claimed = np.where(products.there, products.claimed - products.beside, 0.0)
    weight = np.where(products.there, 1 / np.square(products.room), 0.0)
    for role, axis in ((0, 2), (1, 1)):
        power = (weight * own * own).sum(axis=axis)
        times = (weight * own * claimed).sum(axis=axis) / np.where(power > 0, power, 1.0)
        value = products.spread_right if role else products.left_input / scale
        length = np.linalg.norm(value, axis=-1)
        known = (power > 0) & (length > 0)
        if not known.any() or np.ptp(length[known]) < 1e-6 * length[known].max():
            continue
        sure = np.where(known, power / np.square(np.where(known, length, 1.0)), 0.0)
        mean = float((sure * times * length).sum() / sure.sum())
        same = roundest(mean, float(sure.sum() ** -0.5))
        for each in (same, mean):
            factors = each / np.where(length > 0, length, 1.0)
            made = own * (factors[:, None, :] if role else factors[..., None]) + products.beside
            if products.fits(made) and abs(each) > 0:
                own_factors = factors
                if role:  # one of the query heads that share a key head
                    own_factors = factors[:: len(factors) // len(products.right_input)]
                name = products.roles[role]
                yield products.edit(
                    "lengths",
                    _("each row of {name} is brought to the length {length}").format(
                        name=name, length=shown(each)),
                    _("the model takes {name} as it is").format(name=name),
                    _("look for a normalisation of {name}").format(name=name),
                    first(name, "weighed", factors=own_factors[..., None]),
                    1,
                )  # fmt: skip
                return


def _averaged(products: Products) -> Iterator[Reading]:
    """The mean over heads in place of each head."""
    for role in (1, 0):
        value = products.right_input if role else products.left_input
        if len(value) < 2:
            continue
        mean = np.broadcast_to(value.mean(axis=0), value.shape)
        if _explains(products, role, mean):
            name = products.roles[role]
            yield products.edit(
                "averaged",
                _("{name} is the mean over the heads, for each of them").format(name=name),
                _("the model gives each head its own"),
                _("look for a mean over heads"),
                first(name, "head_mean"),
                0,
            )
            return


def _turned_weights(products: Products) -> Iterator[Reading]:
    """Weights whose rows and columns are exchanged in some heads."""
    weights, heads = products.left_input, products.wrong
    if products.name != "mixed" or weights.shape[1] != weights.shape[2] or not heads:
        return
    turned = weights.transpose(0, 2, 1)
    if len(heads) < len(weights) and _explains(products, 0, turned, heads):
        yield products.edit(
            "mix-transposed",
            _("v is mixed by the transposed weights (only in head {heads})").format(
                heads=listed(heads)),
            _("the model sums over keys"),
            _("sum over keys: weights (query, key) times v (key, width)"),
            first("weights", "heads_turned", heads=tuple(heads)),
            0,
        )  # fmt: skip


def _cast(products: Products) -> Iterator[Reading]:
    """One input rounded to a coarser format."""
    own = bits_of(products.attention.difference.scene.context.precision)
    for format in CASTS:
        if format in FLOATS and FLOATS[format][0] >= own:
            continue
        for role in (1, 0):
            scale = 1.0 if role or products.name == "mixed" else products.attention.scale
            if not scale:
                continue
            value = products.right_input if role else products.left_input / scale
            if _explains(products, role, rounded_to(format, value) * scale):
                name = products.roles[role]
                yield products.edit(
                    "precision",
                    _("{name} is rounded to {format} before it is read").format(
                        name=name, format=format),
                    _("the claims are said to be finer"),
                    _("do not cast {name} to {format}").format(name=name, format=format),
                    first(name, "cast", format=format),
                    0,
                )  # fmt: skip
                return
