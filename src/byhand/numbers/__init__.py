"""The number systems in which a plan can be worked out, each behind the boundary in `base`."""
