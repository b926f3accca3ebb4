"""What claims were worked in, where nobody says it: their numbers tell."""

from __future__ import annotations

from collections.abc import Sequence

from byhand.checking.claims import Claim
from byhand.checking.reading.held import cast_on_the_way, narrowest_format
from byhand.checking.replay import EXACT
from byhand.numbers.allowed.precisions import AUTOCAST
from byhand.numbers.floats.formats import FORMATS

READ_BY_PRODUCTS = ("embed.token", "embed.position", ".norm.out")  # or by norms before them


def usual_precision(claims: Sequence[Claim]) -> str:
    """The narrowest float format that holds the claims; "exact" where all are written by hand.

    Floats are often saved in a wider format than they were worked in: bfloat16 has no type in
    NumPy, and lists hold float64.  Where what products read stays in float32, and what they give
    has 16 bits, it was cast on the way: autocast.
    """
    floats = [claim for claim in claims if claim.format in FORMATS]
    if not floats:
        return EXACT
    # what is worked out tells; embeddings are as the checkpoint has them
    told = [claim for claim in floats if not claim.address.startswith("embed.")] or floats
    narrowest = min((str(claim.format) for claim in told), key=lambda name: FORMATS[name].bits)
    found = narrowest_format((claim.values for claim in told), narrowest)
    read = (claim for claim in floats if claim.address.endswith(READ_BY_PRODUCTS))
    if any(cast_on_the_way(claim.values, str(claim.format), found) for claim in read):
        return f"{AUTOCAST}{found}"
    return found
