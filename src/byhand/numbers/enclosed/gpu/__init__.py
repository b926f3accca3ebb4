"""Limb arithmetic on the GPU: torch tensors, kernels, and repeated passes.

engine      tensor_engine: the array functions on tensors
kernels     recording, kernels, fused, row_kernels: array code that becomes Triton kernels
attention   visible_keys, causal_scores, causal_attention: what is hidden is not touched
passes      decisions, repeated_pass: what the host decided once, checked for every other text
"""
