"""What people look at: pictures of a run."""
