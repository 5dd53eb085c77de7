"""``python -m pinloop``: the command line. Nothing else lives here."""

from .cli import main

if __name__ == "__main__":
    main()
