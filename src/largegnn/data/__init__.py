"""Read files into an `AlignmentTask`, its names and its literals, and write tasks to files."""
