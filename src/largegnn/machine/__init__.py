"""The machine under the program: devices, memory, locks, compiled loops."""
