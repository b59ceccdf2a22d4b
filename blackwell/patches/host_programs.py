"""The programs that make source trees on hosts, for use on this machine: what is checked here is what runs there.

They are files of the role, which copies them to the host, and import one another as neighbours in a directory. This is
the one place that says where they are.
"""

import importlib
import sys

from blackwell import paths

FILES = paths.ROOT / "roles/sglang/files"

if str(FILES) not in sys.path:
    sys.path.append(str(FILES))

git_command = importlib.import_module("git_command")
source_repository = importlib.import_module("source_repository")
source_tree = importlib.import_module("source_tree")
SourceTreeError = git_command.SourceTreeError
