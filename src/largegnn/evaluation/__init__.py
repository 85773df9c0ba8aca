"""Evaluation: how good ranks and pairs are."""
