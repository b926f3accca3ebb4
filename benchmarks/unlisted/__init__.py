"""Changes of kinds that no list has, planted in ports of four families, and handed to check.

    changes    the changes and the pairs of them: where each shows, and what is true of it
    truth      what is true of a sentence: by its words, and by what it predicts of another text
    dumps      a port's dump, whole or sparse, and its check, with the edited plans kept
    measure    every change in every mode and format, with the results
    table      the same as tables

    python -m benchmarks.unlisted [--record] [--seed=N] [--mode=full|blocks|logits]
                                  [--format=float32|bfloat16] [--jobs=N] [--brief] [NAME …]

They were written before the readings of differences were, and by somebody who had not seen those.
A named cause is true if its words are, or if the edited plan that it names predicts what the same
port gives for another text.  Otherwise it is false, and false causes are what this counts.
"""
