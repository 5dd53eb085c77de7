"""Tests of the integrators, one module per module of `pinloop.integrate`."""
