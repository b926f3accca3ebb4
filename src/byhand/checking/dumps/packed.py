"""Dumps of vLLM and SGLang: packed projections, deferred residuals, tuples and fused kernels.

Their modules are called as those of `transformers`, but

    qkv_proj, gate_up_proj   give q, k and v (gate and up) side by side
    a norm                   reads what is added and the residual, and gives (normed, their sum)
    a layer                  gives (what the MLP adds, the stream before that): the stream is
                             their sum
    rotary_emb               gives (q, k) after RoPE
    attn                     is the attention kernel: what it gives goes into o_proj
    act_fn                   gives act(gate) · up

The members of a tuple are in the dump as a tuple, or as name.0 and name.1.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

import numpy as np

from byhand.checking.claims import Entry
from byhand.checking.dumps.view import LAYER, Read, View, aside, called, columns, fitted
from byhand.language import _
from byhand.names import without_wrappers

_MEMBER = re.compile(
    r"(?P<module>.+?)(?:(?:\.output)?[./](?P<place>[01])|\.output\[(?P<other>[01])\])"
)
_SIGNS = re.compile(
    r".*\.(?:self_attn|attn|attention)\.attn|logits_processor|.*\.mla_attn"
    r"|.*norm(?:\.output)?[./]1|.*\.rotary_emb(?:\.output)?[./][01]"
)
_PACKED = re.compile(r".*\.(?:qkv_proj|gate_up_proj|fused_qkv_a_proj|query_key_value)")


def is_packed(view: View) -> bool:
    """Whether the dump looks like one of vLLM or SGLang."""
    if "packed" not in view.decided:
        names = [without_wrappers(name) for name in view.entries]
        fused = any(name.endswith((".act_fn", ".mlp.experts")) for name in names)
        signs = any(map(_SIGNS.fullmatch, names))
        view.decided["packed"] = signs or (fused and any(map(_PACKED.fullmatch, names)))
    return bool(view.decided["packed"])


def read_packed(entry: Entry, view: View) -> Read | None:
    """What an entry of such a dump is read as; None where it is read by its name alone."""
    name = without_wrappers(entry.name)
    if entry.beside:
        members = [replace(entry, beside=()), *_others(entry)]
        found = [read for at, each in enumerate(members) for read in _member(each, name, at, view)]
        return found or None
    match = _MEMBER.fullmatch(name)
    if match is not None:
        place = int(match["place"] or match["other"] or 0)
        if found := _member(entry, match["module"], place, view):
            return found
    return _module(entry, name, view)


def _others(entry: Entry) -> list[Entry]:
    return [replace(entry, values=values, beside=()) for values in entry.beside]


def _block(name: str) -> str:
    match = LAYER.search(name)
    return f"block.{match[1]}" if match else ""


def _member(entry: Entry, module: str, place: int, view: View) -> Read:
    """One member of the tuple that a module gives."""
    at, last = _block(module), module.rpartition(".")[2]
    tuple_of = _("a tuple: {place} is read as {address}")

    def as_step(address: str | None) -> Read:
        if address is None:
            return []
        order = _("the first") if place == 0 else _("the second")
        said = f"{module}.{place}" if not entry.said and entry.name == module else entry.name
        how = tuple_of.format(place=order, address=_in_any_block(address))
        return [called(replace(entry, said=said), address, how, style=FLAT)]

    if last == "rotary_emb" and at:
        return as_step(view.first(f"{at}.attn.{'qk'[place]}_rotated"))
    if _PACKED.fullmatch(module) or last == "experts":
        return (_module(entry, module, view) or []) if place == 0 else []
    address = view.module(module)
    if last.endswith("_proj") and address is not None:  # (the product, a bias that is not added)
        return [called(entry, address, style=FLAT)] if place == 0 else []
    if address is None:
        return []
    if view.plan.known.get(f"{at}.attn.out") == address:  # (out, weights) of eager attention
        weights = entry.values.ndim >= 3 and place == 1
        return as_step(address) if place == 0 else as_step(
            f"{at}.attn.weights" if weights else None
        )  # fmt: skip
    step = view.plan[address]
    norm = address.removesuffix(".out").removesuffix(".normalized")
    if norm.endswith("norm") or norm.endswith(".after"):
        return as_step(address if place == 0 else _read_by(norm, view))
    if step.op == "add" and _deferred(entry, module, view):
        return as_step(step.inputs["y" if place == 0 else "x"])
    return as_step(address) if place == 0 else []


FLAT = "huggingface"  # heads side by side


def _in_any_block(address: str) -> str:
    return re.sub(r"\bblock\.\d+", "block.L", address)


def _read_by(norm: str, view: View) -> str | None:
    """The step that a norm reads: what comes into its first line."""
    lines = [step for step in view.plan if step.address.startswith(norm + ".")]
    return lines[0].inputs.get("x") if lines else None


def _deferred(entry: Entry, module: str, view: View) -> bool:
    """Whether both members of a layer's tuple are rows of the stream."""
    whole = view.entries.get(module)
    shapes = [entry.values.shape]
    if whole is not None and whole.beside:
        shapes += [whole.values.shape, whole.beside[0].shape]
        return len(set(shapes)) == 1
    for before, behind in ((".", ""), ("/", ""), (".output.", ""), (".output[", "]")):
        both = [view.entries.get(f"{module}{before}{place}{behind}") for place in (0, 1)]
        if all(each is not None and each.values.shape == entry.values.shape for each in both):
            return True
    return False


def _module(entry: Entry, module: str, view: View) -> Read | None:
    """What a module gives that is packed, fused or unknown to `transformers`."""
    at, last = _block(module), module.rpartition(".")[2]
    if last == "logits_processor":
        found = fitted(entry, "logits", (("pos",), (view.plan["logits"].axes[-1],)), view)
        return None if found is None else [replace(found, read=_of_last(found))]
    if not at:
        return None
    attn = f"{at}.attn"
    if last == "qkv_proj" and not view.has(f"{attn}.qkv"):
        return _cut(entry, view, [f"{attn}.{each}" for each in "qkv"])
    if last == "qkv_proj":
        return [called(entry, f"{attn}.qkv")]
    if last == "gate_up_proj":
        mlp = f"{at}.mlp.shared" if "shared_expert" in module else f"{at}.mlp"
        return _cut(entry, view, [f"{mlp}.gate", f"{mlp}.hidden"])
    if last == "fused_qkv_a_proj":
        return _cut(entry, view, [f"{attn}.q_latent", f"{attn}.kv_latent"])
    if not is_packed(view):
        return None
    block = view.block(at)
    head_by_head = block and block.attention and block.attention.packed == "per_head"
    if last == "query_key_value" and head_by_head:  # in the files, not in vLLM
        return _cut(entry, view, [f"{attn}.{each}" for each in "qkv"])
    if last == "attn" or last == "mla_attn":
        address = view.first(f"{attn}.mixed")
        how = _("what the attention kernel gives, before its output matrix")
        return None if address is None else [called(entry, address, how, style=FLAT)]
    if last == "act_fn":
        mlp = f"{at}.mlp.shared" if "shared_expert" in module else f"{at}.mlp"
        address = view.first(f"{mlp}.gated", f"{mlp}.act")
        return None if address is None else [
            called(entry, address, _("one kernel: the activation of the gate, times up"))
        ]  # fmt: skip
    if last == "experts" and view.first(f"{at}.mlp.combined", f"{at}.mlp.out"):
        return [called(entry, view.first(f"{at}.mlp.combined", f"{at}.mlp.out") or "")]
    if re.fullmatch(r"(?:.*\.)?(?:layers|h)\.\d+", module):
        return _alone(entry, module, at, view)
    return None


def _of_last(entry: Entry) -> str:
    return _("the last position alone") if "[" in entry.name else ""


def _alone(entry: Entry, module: str, at: str, view: View) -> Read | None:
    """A layer of which one array is kept: the stream, or the first member of its tuple.

    It is the first member where it equals what the MLP gives.
    """
    given = [view.entries.get(f"{module}.mlp{end}") for end in ("", ".down_proj")]
    same = (each is not None and np.array_equal(each.values, entry.values) for each in given)
    address = view.first(f"{at}.mlp.after.out", f"{at}.mlp.out")
    if address is None or not any(same):
        return None
    return [called(entry, address, _("the first member of a tuple: what the MLP adds"))]


def _cut(entry: Entry, view: View, addresses: list[str]) -> Read | None:
    """The columns of several steps that stand side by side in one array."""
    if not all(map(view.has, addresses)):
        return None
    steps = [view.plan[address] for address in addresses]
    widths = [prod(step.shape) // view.plan.length for step in steps]
    pieces = columns(entry, widths)
    if pieces is None:
        expected = " + ".join(map(str, widths))
        found = str(entry.values.shape[-1]) if entry.values.ndim else _("one number")
        reason = _("columns of {names}: {expected} expected, {found} found").format(
            names=", ".join(a.rpartition(".")[2] for a in addresses), expected=expected, found=found
        )
        return [replace(aside(entry, reason), misfit=True)]
    names = ", ".join(address.rpartition(".")[2] for address in addresses)
    how = _("packed: cut into the columns of {names}").format(names=names)
    return [
        called(piece, address, how, style=FLAT)
        for piece, address in zip(pieces, addresses, strict=True)
    ]
