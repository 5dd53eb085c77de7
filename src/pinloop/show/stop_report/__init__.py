"""The report of a stop: one HTML file with numbers, plots, assumptions and a replay.

Everything in it comes from the result; nothing is fetched when it is opened.
"""

from .report_page import write_report

__all__ = ["write_report"]
