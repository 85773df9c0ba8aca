"""From files to an `AlignmentTask` and a `MergedGraph`, and from a made-up world to files."""
