"""What was to be proven and is not: which numbers and which next tokens, and how close they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.parts import Finding
from byhand.document.words import whole
from byhand.language import _
from byhand.tracing import Trace

if TYPE_CHECKING:
    from byhand.proof import Proof, Unproven

MOST = 10  # that are told one by one
MOST_TOKENS = 4  # that may be the next one
NARROW = 3  # significant digits of how close two logits are


def unproven(trace: Trace) -> Finding:
    """A sentence each for the first of them, then how many more there are."""
    proof = trace.proof
    assert proof is not None
    lead = _("not proven to {digits} digits, with {bits} bits:")
    told = [line(one, proof, trace) for one in proof.undecided[:MOST]]
    if (more := proof.count - len(told)) > 0:
        told.append(_("and {count} more").format(count=whole(more)))
    return Finding(lead.format(digits=proof.digits, bits=whole(proof.bits)), tuple(told), True)


def line(one: Unproven, proof: Proof, trace: Trace) -> str:
    """What is open, and how close it is."""
    if one.asked == "next":
        tokens = [words.token_label(trace.token(id)) for id in one.candidates]
        text = _("{address}: {tokens}, {distance} apart")
        return text.format(
            address=one.address,
            tokens=words.some_of(tokens, MOST_TOKENS),
            distance=" ± ".join(one.enclosure.interval(NARROW)),
        )
    shown = " ± ".join(one.enclosure.interval(proof.digits))
    if one.enclosure.contains(0):
        return _("{address} = {shown}, perhaps zero").format(address=one.address, shown=shown)
    return f"{one.address} = {shown}"
