"""The same stages over several machines, on Ray (optional: `pip install 'largegnn[cluster]'`)."""
