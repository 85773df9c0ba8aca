"""What people and programs are shown about a task and a run."""
