"""What the program needs of a machine: devices, workers, memory, files, locks, progress."""
