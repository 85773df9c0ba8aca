"""Use the machine: devices, memory, worker threads and processes, files, locks, progress."""
