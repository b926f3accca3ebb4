"""Training: the data, and what a network has to beat on it.

`corpora` has the texts and `ngram` the baseline; neither needs torch.
"""
