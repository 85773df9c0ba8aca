"""The stage `subgraphs`."""

from largegnn.division.subgraphs import SubgraphsResult, divide_again, subgraphs

__all__ = ["SubgraphsResult", "divide_again", "subgraphs"]
