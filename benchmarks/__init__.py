"""Measurements of speed and accuracy beside other packages; run as modules, not installed.

``python -m benchmarks`` runs the suite and writes ``docs/performance.md``; ``python -m
benchmarks.check`` is what continuous integration runs. The other modules that can be run answer
single questions: `stops`, `studies`, `odca_scaling`, `regularization`, `locking_comparison`,
`closure`.
"""
