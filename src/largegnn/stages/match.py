"""The stage `match`: see `largegnn.matching.match`."""

from largegnn.matching.match import MatchOutcome, MatchResult, match

__all__ = ["MatchOutcome", "MatchResult", "match"]
