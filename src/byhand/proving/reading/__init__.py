"""The reading of properties: patterns, variables, functions of them, claims, known weights."""
