"""Numbers that are proven: sets that contain the real value, and the arithmetic on them."""
