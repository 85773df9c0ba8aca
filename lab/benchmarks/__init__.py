"""Measurements that are worth repeating: `python -m lab.benchmarks.NAME --help`."""
