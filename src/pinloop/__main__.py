"""``python -m pinloop``: the command line. Nothing else lives here."""

from .cli.main import main

if __name__ == "__main__":
    main()
