"""The version of byhand."""

__version__ = "0.1.0"
