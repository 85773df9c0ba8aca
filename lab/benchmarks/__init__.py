"""Measurements that someone will make again: `python -m lab.benchmarks.NAME --help`."""
