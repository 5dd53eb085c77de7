"""Campaigns that try random cases for as long as one likes, and say which went wrong.

A campaign is a file here: it draws cases from a seed and judges each. Tests with fixed cases live
in ``tests``.
"""
