"""Runs on the host with the unit's own interpreter: the ``server_args.py`` that it imports, with fields and options.

Each field comes with its default and each option with its keywords, as they are written.

The file is read, not executed, so that this takes milliseconds and needs no GPU.
"""

import ast
import json
from importlib.machinery import PathFinder
from pathlib import Path

package = Path(PathFinder.find_spec("sglang").origin).parent
path = package / "srt" / "server_args.py"
tree = ast.parse(path.read_text(encoding="utf-8"))
server_args = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ServerArgs")
fields = {
    node.target.id: ast.unparse(node.value) if node.value else ""
    for node in server_args.body
    if isinstance(node, ast.AnnAssign)
}
options = {
    argument.value: {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    for node in ast.walk(server_args)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"
    for argument in node.args
    if isinstance(argument, ast.Constant)
}
print(json.dumps({"path": str(path), "fields": fields, "options": options}))
