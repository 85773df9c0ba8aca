"""The paper's systems, their records and tables."""
