"""The stage `landmarks`."""

from largegnn.division.landmarks import LandmarksOutcome, LandmarksResult, landmarks

__all__ = ["LandmarksOutcome", "LandmarksResult", "landmarks"]
