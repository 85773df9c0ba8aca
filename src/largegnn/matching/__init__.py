"""From vectors of entities to pairs: who is nearest to whom, and which pairs to believe."""

from __future__ import annotations

from largegnn.matching.searchers import SEARCHERS, Searcher, SearchOptions, SearchResult, is_exact, search, search_both

__all__ = ["SEARCHERS", "SearchOptions", "SearchResult", "Searcher", "is_exact", "search", "search_both"]
