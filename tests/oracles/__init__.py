"""Independent ways to the same numbers, for tests to compare with.

    architectures   small models that between them use every option of `byhand.spec`
    arb_pass        every entry of a plan in Arb balls, through `byhand.working`
    torch_pass      the forward pass again in torch float64, knowing only the spec
    comparing       a trace against both

Nothing here reads a value of the exact number system.
"""
