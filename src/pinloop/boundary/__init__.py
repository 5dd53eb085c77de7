"""What crosses the border of the package, arguments and files, whatever they are about."""
