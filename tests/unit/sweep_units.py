"""The unit that a deployment renders, for tests of what a sweep makes from it."""

import re

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from blackwell import paths
from blackwell.sweep.deployed import Deployed

PYTHON = "/opt/sglang/releases/0.5.9-f43cee65b1a2/venv/bin/python"
SPECULATION = (
    *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/models/draft"),
    *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"),
    *("--speculative-disable-batch-threshold", "5"),
)
PROGRAM = (PYTHON, "-m", "sglang.launch_server")
OPTIONS = (
    *("--model-path", '/models/a 100% "big" $model', "--tp-size", "1", "--max-running-requests", "8"),
    "--disable-cuda-graph",
)
ARGV = (*PROGRAM, *OPTIONS, "--host", "127.0.0.1", "--port", "30000", *SPECULATION)
VARIABLES = {
    "_sglang_release": "0.5.9-f43cee65b1a2",
    "sglang_user": "sglang",
    "_sglang_server_environment_file": "/etc/sglang/sglang.env",
    "_sglang_cache_dir": "/opt/sglang/releases/0.5.9-f43cee65b1a2/cache",
    "_sglang_server_ready_program": "/etc/sglang/sglang-ready",
    "sglang_server_start_timeout": 180,
    "sglang_server_stop_timeout": 60,
    "sglang_server_host": "127.0.0.1",
    "sglang_server_port": 30000,
    "_sglang_server_ready_record": "/run/sglang/ready.json",
    "sglang_server_ready_prompt": 'n5 "n6" 50% of $HOME',
    "sglang_server_freeze_gc": True,
    "sglang_server_memory_max": "infinity",
    "sglang_device": "cpu",
    "_sglang_server_loopback": True,
}


def rendered(argv=ARGV, **variables):
    """The text of sglang.service, as Ansible renders the template."""
    environment = Environment(
        loader=FileSystemLoader(paths.ROOT / "templates"),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=select_autoescape(),
    )
    environment.filters["bool"] = bool
    environment.tests["match"] = lambda text, pattern: re.match(pattern, str(text)) is not None
    template = environment.get_template("sglang.service.j2")
    return template.render(VARIABLES | {"_sglang_server_argv": list(argv)} | variables)


def deployed(argv=ARGV, **changes):
    """What a host tells that has this command line deployed."""
    values = {
        "argv": tuple(argv),
        "pid": 4711,
        "invocation": "5a1e" * 8,
        "unit": rendered(argv),
        "drop_ins": {},
        "environment_files": ("/etc/sglang/sglang.env",),
        "user": "sglang",
        "group": "sglang",
        "active": True,
        "enabled": True,
        "deployment": "0123456789abcdef",
        "start_s": 24.5,
    }
    return Deployed(**(values | changes))
