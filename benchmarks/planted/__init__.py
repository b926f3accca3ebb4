"""Planted bugs: ports of three families with one mistake each, handed to `byhand.check`.

    models     small models of each family, with weights as after training
    port       what a forward pass in torch is made of
    families   the passes of GPT-2, of Llama and Qwen 2, of GPT-NeoX
    bugs       the mistakes: what each changes in a port, the step at which it first shows, and
               which words of the catalogue of suspects name its cause
    matrix     every bug in every family and format, checked, with the results
    table      the same as tables

    python -m benchmarks.planted [--record] [--seed=N] [BUG …]

The ports share no code with byhand's plan and number systems: they read its weights and the sizes
of its specs, and file what they compute under its addresses.
"""
