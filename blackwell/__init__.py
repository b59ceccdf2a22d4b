"""What the project's commands share: paths, the sandbox, the wheelhouse, the patch series, inventories, remote hosts.

Imports run one way: ``fabfile.py`` and ``scripts/`` use this package; it uses neither of them nor Ansible's internals.
"""
