"""Limbs: fixed-point arrays with proven radii, for models of real size.  No Arb arithmetic.

numbers      digits, arithmetic, array_code, conversions, engine: limbs of 22 bits in float64
functions    functions, exponential, polynomials, coefficients, angles, roots
products     slices, products, pairs: exact products of matrices on float64 BLAS
bounds       radii, spectral, distances
constants    integers, constants: real numbers as Python integers with errors
values       values, weights, indexing
operations   operations, matrices, norms, row_functions, positions, scores, attention,
             prediction
"""
