"""A finished run as web services: the review page and the reconciliation service."""
