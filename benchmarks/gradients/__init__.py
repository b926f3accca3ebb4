"""Planted bugs of learning: a backward pass and an AdamW step by hand, handed to `byhand.check`.

    lessons    small models of two families, and texts to learn from
    passes     a forward pass in NumPy
    port       the way back, from the loss to every weight, with bugs on request
    adamw      a step of AdamW, with bugs on request
    bugs       where each bug first shows, and which kinds of suspects name its cause
    matrix     every bug in every family and format, checked, with the results
    table      the same as a table

    python -m benchmarks.gradients [--record] [--seed=N] [BUG …]

The port shares no code with byhand's plans and number systems: it reads its weights and the sizes
of its specs, and files what it computes under its addresses.
"""
