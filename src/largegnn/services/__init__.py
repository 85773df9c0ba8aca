"""Serve a finished run on the web: the review page and the reconciliation service."""
