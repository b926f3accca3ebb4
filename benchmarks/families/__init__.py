"""Families of checkpoints: small random models of the transformers library, and byhand beside it.

`registry.CASES` has several configs of each model_type, with odd sizes and every option.  Each
is made by the library with random weights, saved, opened by byhand, and compared:

    float64    every hidden state and the logits, with the library in float64 throughout (`lifted`)
    balls      contain the same numbers, worked out with 200 bits
    alarms     the library's own float32 run, eager and sdpa, captured and checked: no error
    count      equals the number of the library's parameters, from config.json alone
    greedy     the next tokens, one by one, are those of the library in float64
"""
