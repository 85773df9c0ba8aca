"""Our figures beside the same figures by code of others: CSLS by kiez, measures of ranks by PyKEEN.

`make conformance` installs both and runs these tests. Files are judged by others in `tests/export`: SSSOM by sssom, RDF
by rdflib, pyshacl and pyoxigraph; the reconciliation service in `tests/review/reconcile`.
"""
