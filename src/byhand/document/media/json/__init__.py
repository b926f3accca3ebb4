"""Results as JSON for programs: every number with its address."""
