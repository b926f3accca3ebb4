"""False alarms: runs of correct implementations, none of which may be called wrong.

    models       Hugging Face folders of every family, with weights of several kinds
    library      `transformers` as people run it: eager and sdpa, batches, padding, caches, formats
    learned      `transformers` as people train it: gradients and updates
    own          byhand's own floats, and the ports of benchmarks/planted in other correct ways
    classes      the same ports in the ways that kernels have: flash, fused, 8 bits, partial sums
    report       their share of the bounds, and how unusual they look, by operation

    python -m benchmarks.alarms [--record]

The same runs show how tight the bounds are, by the largest share of a bound that a run uses.
"""
