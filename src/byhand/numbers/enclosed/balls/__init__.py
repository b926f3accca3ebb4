"""Arb balls: every number a ball that contains the real value, entry by entry.

`operations` has the operations of a transformer, `functions` and `ranges` the functions of narrow
and of wide balls, `given` numbers from outside, `largest` the next token, `sizes` how
balls look from outside, `arrays` what they are kept in.  The balls are Arb's, by python-flint
(Johansson, "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic", IEEE
Transactions on Computers 66, 2017).
"""
