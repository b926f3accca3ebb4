"""The number systems in which a plan can be worked out, each with the interface of `base`."""
