"""Show people a run: the report, its charts, tables and explanations, and the review of pairs."""
