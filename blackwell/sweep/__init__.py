"""A sweep: one host measured at many loads, by itself, so that nobody has to stay connected.

Runs on the host, from a zip, by the release's own interpreter: the standard library, aiohttp and ``blackwell.bench``.
"""
