"""A finished run as a reconciliation service (Reconciliation Service API 0.2), for OpenRefine and others."""
