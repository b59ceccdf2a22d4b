"""Measures how many tokens per second a running server generates at a given load, and compares servers.

Needs the standard library and aiohttp alone, so that it runs on any host that has SGLang. The program that tokenizes
prompts needs transformers, which every such host has, and runs in a process of its own.
"""
