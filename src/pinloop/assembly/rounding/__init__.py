"""Geometry that was meant to be special and lost it to rounding, made exact again.

A mechanism that moves although it has more rows than coordinates does so because axes are parallel,
meet or stand square, or lengths are equal: nobody draws that by chance. Its file has rounded
numbers, with which its loops cannot be closed or cannot move. Within a tolerance this is recognised
and mended: the joint frames are moved by the least change with which the loops close wherever they
go. Everything behind then sees one exact robot: regularization, ranks, formulations, absolute
coordinates, stops.
"""
