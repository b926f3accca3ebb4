"""Arb balls: every number is a ball that contains the real value.

`operations` has the operations of a transformer, `functions` and `ranges` the functions of narrow
and of wide balls.  `given` has weights, `largest` the next token, `sizes` enclosures and sizes,
`arrays` arrays of balls.  The balls are Arb's, through python-flint (Johansson, "Arb: efficient
arbitrary-precision midpoint-radius interval arithmetic", IEEE Transactions on Computers 66, 2017).
"""
