"""The GPU: limb arithmetic as kernels, causal attention, and a pass that is repeated."""
