"""How likely a pair is right, and which pairs to accept."""
