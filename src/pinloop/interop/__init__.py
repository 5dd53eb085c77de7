"""Robots for other libraries, as values of theirs; nothing here simulates."""
