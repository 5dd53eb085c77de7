"""What crosses the border of the package: arguments, and files as text, XML, YAML and CSV."""
