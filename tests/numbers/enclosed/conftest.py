"""Limb arithmetic works on torch tensors in all tests of this folder."""

from byhand.numbers.enclosed.limbs.weights import torch_devices

torch_devices()
