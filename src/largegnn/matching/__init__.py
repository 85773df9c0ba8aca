"""Candidates with evidence become pairs: search, scores, support, selection, confidence."""
