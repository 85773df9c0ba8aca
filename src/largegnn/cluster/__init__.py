"""Compute a run on several machines with Ray (optional: `pip install 'largegnn[cluster]'`)."""
