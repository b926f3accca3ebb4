"""Enclosures: sets that contain the real value, and two kinds of arithmetic on them.

    balls/        Arb balls, entry by entry: any weights, small models
    limbs/        arrays of fixed-point numbers with proven radii: floats, models of real size
    gpu/          limb arithmetic on torch tensors: kernels, causal attention, a repeated pass
    enclosure     one number's proven set, and what both kinds offer
    distance      how far floats are from such sets
    selftest      what the proofs assume of a machine, tried on it

Balls and limbs share no arithmetic (a contract of the import linter), so each checks the other.
"""
