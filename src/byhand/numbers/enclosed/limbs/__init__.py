"""Limbs: fixed-point arrays with proven radii, for models of real size.  No Arb arithmetic."""
