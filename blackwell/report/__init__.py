"""A run of ``fab bench`` for people: a page, figures and tables; and two runs beside each other.

Reads what was fetched, and asks no host.
"""
