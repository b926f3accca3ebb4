"""Attention in all its kinds, once, as value-free steps.

`attention` is the side-trip that looks from one position at others: at those of the same text or,
across, at those of the encoder's text.  Read it from top to bottom: queries, keys and values, RoPE,
scores, softmax, the mixed values.  The axes are those of `forward`.
"""

from __future__ import annotations

from typing import Any

from byhand.passes import Pass
from byhand.plan import WEIGHT, Sheet
from byhand.spec import AttentionSpec, LatentSpec, NormSpec, RotarySpec
from byhand.sublayers import STREAM, clamp, linear, norm, shown_cap, shown_scale

QUERIES, KEYS = ("head", "pos", "d_head"), ("kv_head", "pos", "d_head")


def attention(
    w: Sheet, run: Pass, at: str, attn: AttentionSpec, x: str, source: str | None = None
) -> str:
    """Each position asks (q), is asked (k), and hands on (v); softmax shares out the answers.

    With a `source`, the keys and values are made of the encoder's stream at that address.
    """
    w.sizes |= {"head": attn.heads, "kv_head": attn.kv_heads, "d_head": attn.d_head}
    w.sizes["d_value"] = attn.value_width
    if attn.latent is not None:
        asking = _latent_queries_keys_values(w, run, at, attn, attn.latent, x)
    else:
        asking = _queries_keys_values(w, run, at, attn, x, source)
    *asking, v = asking
    if run.past and source is None:
        asking = [*asking[:1], *(_after_past(w, at, "k", k) for k in asking[1:])]
        v = _after_past(w, at, "v", v, ("kv_head", "pos", _values(attn)))
    scores = _scores(w, run, at, attn, asking, source)
    weights = w.line(
        f"{at}.weights",
        "softmax",
        "softmax(scores, sink)" if attn.sinks else "softmax(scores)",
        _square(source),
        {"x": scores, "sinks": f"{WEIGHT}{at}.sinks" if attn.sinks else None},
    )
    shares = {"weights": weights, "v": v}
    mixed = w.line(f"{at}.mixed", "mix", "Σ weights·v", ("head", "pos", _values(attn)), shares)
    if run.head_outputs:
        w.line(
            f"{at}.head_out",
            "head_outputs",
            "mixed of one head · its slice of W_out",
            ("head", "pos", "d"),
            {"mixed": mixed, "weight": f"{WEIGHT}{at}.out" if attn.out else None},
            layout=run.spec.layout,
        )
    if not attn.out:
        return w.line(f"{at}.out", "merge_heads", "heads side by side", STREAM, {"x": mixed})
    return linear(w, run.spec, f"{at}.out", ("mixed", mixed), STREAM, attn.out_bias)


def _values(attn: AttentionSpec) -> str:
    """The axis of a head's values, where these are as wide as its keys the same."""
    return "d_head" if attn.d_value is None else "d_value"


def _square(source: str | None) -> tuple[str, str, str]:
    """The axes of scores and weights."""
    return ("head", "query", "key" if source is None else "source_key")


# ------------------------------------------------------------------ queries, keys and values


def _queries_keys_values(
    w: Sheet, run: Pass, at: str, attn: AttentionSpec, x: str, source: str | None
) -> list[str]:
    """q, k and v (without queries v alone), normalised, clipped and turned as the model does."""
    reads = [("x", x)] * 3
    sheets = [w] * 3
    if source is not None:
        there = w.about(pos="source")
        reads, sheets = [("x", x), *[("source", source)] * 2], [w, there, there]
    values = ("kv_head", "pos", _values(attn))
    kinds = (
        ("q", QUERIES, attn.heads, attn.q_bias, attn.q_norm),
        ("k", KEYS, attn.kv_heads, attn.k_bias, attn.k_norm),
        ("v", values, attn.kv_heads, attn.v_bias, None),
    )[0 if attn.queries else 2 :]
    if attn.packed:
        found = _unpacked(w, run, at, attn, x)
    else:
        found = []
        for place, (name, axes, heads, bias, normed) in enumerate(kinds):
            sheet, read = sheets[place - len(kinds)], reads[place - len(kinds)]
            if attn.normed == "width" and normed is not None and normed.kind != "none":
                wide = _over_width(sheet, run, at, attn, (name, heads, normed), read, bias)
                found.append(wide)
                continue
            found.append(linear(sheet, run.spec, f"{at}.{name}", read, axes, bias, heads))

    def normalise() -> None:
        for place, (name, axes, _heads, _bias, normed) in enumerate(kinds):
            if normed is not None and normed.kind != "none" and attn.normed != "width":
                sheet = sheets[place - len(kinds)]
                found[place] = norm(sheet, f"{at}.{name}_norm", normed, found[place], axes)
                sheet.also(f"{at}.{name}_norm", found[place])

    if not attn.turned_first:
        normalise()
    if attn.clip is not None:
        for place, (name, axes, *_rest) in enumerate(kinds):
            within = {"least": -attn.clip, "most": attn.clip}
            sheet, read = sheets[place - len(kinds)], (name, found[place])
            found[place] = clamp(sheet, f"{at}.{name}_clipped", axes, read, **within)
    if attn.rotary:
        frequencies = _frequencies(w, run, at, attn.rotary)
        for place, name in enumerate("qk"):
            turn = (name, found[place], frequencies)
            found[place] = _rotate(w, run, at, attn.rotary, turn, kinds[place][1])
    if attn.turned_first:
        normalise()
    return found


def _over_width(
    w: Sheet,
    run: Pass,
    at: str,
    attn: AttentionSpec,
    kind: tuple[str, int, NormSpec],
    read: tuple[str, str],
    bias: bool,
) -> str:
    """q or k of all heads side by side, normalised as one row, then cut into heads."""
    name, heads, normed = kind
    axes = ("pos", f"{name}_width")
    w.sizes[axes[1]] = heads * attn.d_head
    x = linear(w, run.spec, f"{at}.{name}", read, axes, bias)
    x = norm(w, f"{at}.{name}_norm", normed, x, axes)
    w.also(f"{at}.{name}_norm", x)
    cut = QUERIES if name == "q" else KEYS
    return split(w, f"{at}.{name}_heads", cut, x, (0, heads, attn.d_head, attn.d_head))


def _unpacked(w: Sheet, run: Pass, at: str, attn: AttentionSpec, x: str) -> list[str]:
    """q, k and v cut out of one packed matrix product."""
    w.sizes["packed"] = attn.q_width + 2 * attn.kv_width
    packed = linear(w, run.spec, f"{at}.qkv", ("x", x), ("pos", "packed"), attn.q_bias)
    if attn.packed == "per_head":  # q, k, v of head 0, then of head 1, …
        starts, stride = (0, attn.d_head, 2 * attn.d_head), 3 * attn.d_head
    else:  # q of all heads, then k, then v
        starts, stride = (0, attn.q_width, attn.q_width + attn.kv_width), attn.d_head
    counts = (attn.heads, attn.kv_heads, attn.kv_heads)
    return [
        split(
            w,
            f"{at}.{name}",
            QUERIES if name == "q" else KEYS,
            packed,
            (start, heads, attn.d_head, stride),
            f"the columns of {name} in qkv",
        )
        for name, start, heads in zip("qkv", starts, counts, strict=True)
    ]


def _latent_queries_keys_values(
    w: Sheet, run: Pass, at: str, attn: AttentionSpec, latent: LatentSpec, x: str
) -> list[str]:
    """Down to a few numbers for each position, and up to the heads.

    The part of q and k that RoPE turns stands behind the other part; that of k is one for all
    heads.
    """
    assert attn.rotary is not None
    turned, still = attn.rotary.width, attn.d_head - attn.rotary.width
    w.sizes |= {"q_width": attn.q_width, "turned": turned, "still": still, "one_head": 1}
    w.sizes |= {"rank": latent.rank, "kv_down": latent.rank + turned}
    w.sizes["kv_up"] = attn.heads * (still + attn.value_width)
    read = ("x", x)
    if latent.query_rank is not None:
        w.sizes["q_rank"] = latent.query_rank
        few = linear(w, run.spec, f"{at}.q_latent", read, ("pos", "q_rank"), latent.down_bias)
        few = norm(w, f"{at}.q_latent_norm", latent.query_norm, few, ("pos", "q_rank"))
        read = ("q_latent", few)
    q = linear(w, run.spec, f"{at}.q_wide", read, ("pos", "q_width"), bias=False)
    down = linear(w, run.spec, f"{at}.kv_latent", ("x", x), ("pos", "kv_down"), latent.down_bias)
    one = ("one_head", "pos", "rank")
    few = split(w, f"{at}.kv_few", one, down, (0, 1, latent.rank, latent.rank))
    few = norm(w, f"{at}.kv_latent_norm", latent.norm, few, one)
    up = linear(w, run.spec, f"{at}.kv_wide", ("kv_latent", few), ("pos", "kv_up"), bias=False)

    heads, each = attn.heads, still + attn.value_width
    q_still = split(w, f"{at}.q_still", _cut("still"), q, (0, heads, still, attn.d_head))
    q_turned = split(w, f"{at}.q_turned", _cut("turned"), q, (still, heads, turned, attn.d_head))
    k_still = split(w, f"{at}.k_still", _cut("still"), up, (0, heads, still, each))
    shared = ("one_head", "pos", "turned")
    k_turned = split(w, f"{at}.k_turned", shared, down, (latent.rank, 1, turned, turned))
    v = split(w, f"{at}.v", _cut(_values(attn)), up, (still, heads, attn.value_width, each))
    frequencies = _frequencies(w, run, at, attn.rotary)
    q_turned = _rotate(w, run, at, attn.rotary, ("q", q_turned, frequencies), _cut("turned"))
    k_turned = _rotate(w, run, at, attn.rotary, ("k", k_turned, frequencies), shared)
    return [
        w.line(f"{at}.q", "beside", "still, then turned", QUERIES, {"x": q_still, "y": q_turned}),
        w.line(f"{at}.k", "beside", "still, then turned", QUERIES, {"x": k_still, "y": k_turned}),
        v,
    ]


def _cut(width: str) -> tuple[str, str, str]:
    return ("head", "pos", width)


def split(
    w: Sheet,
    address: str,
    axes: tuple[str, ...],
    x: str,
    columns: tuple[int, int, int, int],
    formula: str = "",
) -> str:
    """Heads cut out of rows: columns = (start, heads, width, stride)."""
    start, heads, width, stride = columns
    name = address.rpartition(".")[2]
    return w.line(
        address,
        "split_heads",
        formula or f"the columns of {name}",
        axes,
        {"x": x},
        start=start,
        heads=heads,
        width=width,
        stride=stride,
    )


def _frequencies(w: Sheet, run: Pass, at: str, rotary: RotarySpec) -> str | None:
    """The angles per position, where they are given or made by a rule; None: powers of the base."""
    if rotary.scaling is None:
        return f"{WEIGHT}{at}.frequencies" if rotary.given else None
    w.sizes["pair"] = rotary.width // 2
    values = rotary.scaling.frequencies(rotary.base, rotary.width, max(run.positions) + 1)
    formula = f"θ_i: {rotary.base}^(-2i/{rotary.width}), {rotary.scaling.kind}"
    return w.line(f"{at}.frequencies", "constants", formula, ("pair",), values=values)


def _rotate(
    w: Sheet,
    run: Pass,
    at: str,
    rotary: RotarySpec,
    turn: tuple[str, str, str | None],
    axes: tuple[str, ...],
) -> str:
    """RoPE: each pair of entries turned by an angle that grows with the position.

    turn = (the short name of x, its address, that of the angles per position).
    """
    name, x, frequencies = turn
    angle = "θ_i" if frequencies else f"{rotary.base}^(-2i/{rotary.width})"
    return w.line(
        f"{at}.{name}_rotated",
        "rotate",
        f"pair i of {name} turned by pos·{angle}{shown_scale(rotary.magnitude, ', times ')}",
        axes,
        {"x": x, "frequencies": frequencies},
        positions=run.positions,
        width=rotary.width,
        base=rotary.base,
        pairing=rotary.pairing,
        magnitude=rotary.magnitude,
    )


def _after_past(w: Sheet, at: str, name: str, x: str, axes: tuple[str, ...] = KEYS) -> str:
    """The given keys or values of earlier tokens, followed by those of these tokens."""
    head, _pos, width = axes
    past = w.line(f"{at}.past_{name}", "given", "from before", (head, "past", width))
    both = {"x": past, "y": x}
    return w.line(f"{at}.all_{name}", "join", "past, then new", (head, "key", width), both)


# ------------------------------------------------------------------ scores


def _scores(
    w: Sheet, run: Pass, at: str, attn: AttentionSpec, asking: list[str], source: str | None
) -> str:
    """How much each query wants of each key: q·k, scaled, and what stands beside it.

    Without queries and keys: the table, less slope·distance, or 0 where neither is.
    """
    beside: dict[str, str | None] = {
        "table": f"{WEIGHT}{at}.score_table" if attn.score_table else None,
        "slopes": f"{WEIGHT}{at}.slopes" if attn.alibi else None,
        "bias": f"{run.stack}relative" if attn.relative else None,
    }
    seen: dict[str, Any] = {"mask": run.mask(attn), "queries": run.positions, "keys": run.keys}
    seen = seen if source is None else run.across()
    if not asking:
        formula = " ".join(["table"] * attn.score_table + ["- slope·|query - key|"] * attn.alibi)
        return w.line(
            f"{at}.scores", "table_scores", formula or "0", _square(source), beside,
            heads=attn.heads, **seen,
        )  # fmt: skip
    q, k = asking
    return w.line(
        f"{at}.scores",
        "scores",
        shown_cap(f"q·k{shown_scale(attn.scale)}", attn.cap)
        + " - slope·|query - key|" * attn.alibi
        + " + table" * attn.score_table
        + " + relative" * attn.relative,
        _square(source),
        {"q": q, "k": k, **beside},
        scale=attn.scale,
        cap=attn.cap,
        **seen,
    )
