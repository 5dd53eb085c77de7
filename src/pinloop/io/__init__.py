"""One reader per format, each to a `Description`; `load` picks the reader by content."""
