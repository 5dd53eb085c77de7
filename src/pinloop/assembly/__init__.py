"""Closed configurations, and rounded geometry made exact; which rows suffice is not asked here."""
