"""A run folder: what it holds, whether it can be trusted, and which steps it saves from being computed again."""
