"""Confidence: how likely a pair is correct, and which pairs to accept."""
