"""The report of a study: one HTML file with distributions, maps, worst cases and their replays.

Its size does not depend on the number of cases: pictures show bins, and only the worst cases are
replayed. Nothing is fetched when it is opened.
"""

from .study_page import write_report

__all__ = ["write_report"]
