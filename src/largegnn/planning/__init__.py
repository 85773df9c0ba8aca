"""Estimates before a run starts: the division, memory, time, and what the input holds."""
