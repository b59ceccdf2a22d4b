"""Proves that the GPUs of a host can sum what they hold, and how fast."""
