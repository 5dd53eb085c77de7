"""Tests of the readers, one module per module of `pinloop.load`."""
