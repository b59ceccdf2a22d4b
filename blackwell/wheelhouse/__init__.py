"""Wheelhouses: one archive for each SGLang release and kind of host, with every wheel that such a host installs."""
