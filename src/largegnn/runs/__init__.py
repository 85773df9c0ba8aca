"""Run folders: what is in them, and how they are brought up to date."""
