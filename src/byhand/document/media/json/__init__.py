"""What was worked out as JSON: every number with its address, for programs."""
