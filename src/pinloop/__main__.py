"""The commands ``pinloop`` and ``python -m pinloop``; Ctrl-C is handled before large imports."""

from importlib import import_module

from .cli import quiet_interrupts


def main() -> None:
    """Run the command line of this process and exit."""
    with quiet_interrupts():
        import_module("pinloop.cli.main").main()


if __name__ == "__main__":
    main()
