"""Disposable real hosts on this machine: systemd as PID 1, sshd, an address of their own.

``api`` is what scripts and tests call. Pure functions (text in, value out) and the few that change this machine live
in modules named after what they hold; everything that this package makes in the kernel carries a name that starts
with ``settings.PREFIX``.
"""
