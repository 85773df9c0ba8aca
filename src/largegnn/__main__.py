"""`python -m largegnn` is the command line."""

from largegnn.cli import main

if __name__ == "__main__":
    main()
