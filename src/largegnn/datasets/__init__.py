"""Data sets: public ones by name, made-up ones by size."""
