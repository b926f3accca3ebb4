"""An explanation as sections of parts; `explaining` works out its numbers."""

USUAL = ("facts", "attribution", "lens", "attention", "geometry", "health")
FURTHER = ("gradients", "stream", "norms", "inputs")  # shown only on request
SECTIONS = (*USUAL, *FURTHER)
