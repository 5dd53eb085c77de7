"""Tests of the equations of motion, one module per module of `pinloop.dynamics`."""
