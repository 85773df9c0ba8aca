"""The review page: a small web server on this machine."""
