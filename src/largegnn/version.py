"""The version, in one place: the package metadata and the run folders both quote it."""

__version__ = "0.3.0"
