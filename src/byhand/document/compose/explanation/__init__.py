"""An explanation as sections of parts; what the numbers say is worked out in `explaining`."""

USUAL = ("facts", "attribution", "lens", "attention", "geometry", "health")
FURTHER = ("stream", "norms", "inputs")  # which are shown where they are asked for
SECTIONS = (*USUAL, *FURTHER)
