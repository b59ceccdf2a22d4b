"""The options of the comparison of speeds: what they are, what is wrong with them, and the plan that they ask for."""

import argparse
from pathlib import Path

from command_line import Parser
from machine import not_shared
from models import CONTEXT
from speed_plan import KV_TOKENS, LEVELS, MOST_REQUESTS, PHASES, Plan, stepped

from blackwell.bench.errors import BenchError
from blackwell.bench.points import ARMS, DYNAMIC
from blackwell.bench.workload import Workload


def parser(description: str) -> argparse.ArgumentParser:
    """The parser of the command line."""
    made = Parser(prog="speed.py", description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("out", type=Path, metavar="OUT", help="directory for the results; made if it is not there")
    made.add_argument("--stock", default="", metavar="PYTHONPATH", help="what finds the unpatched SGLang")
    made.add_argument("--arms", nargs="+", default=ARMS, metavar="ARM", help=f"some of {' '.join(ARMS)} (all)")
    made.add_argument("--levels", nargs="+", type=int, default=LEVELS, metavar="C", help=f"clients at once {LEVELS}")
    made.add_argument("--repeats", type=int, default=3, help="points of an arm at a level (%(default)s)")
    made.add_argument("--window", type=float, default=2.5, metavar="S", help="shortest window in s (%(default)s)")
    made.add_argument(
        "--lives", type=float, default=1.5, help="shortest window in lives of an average answer (%(default)s)"
    )
    made.add_argument("--prompt-tokens", type=int, default=256, help="of each request (%(default)s)")
    made.add_argument("--new-tokens", type=int, default=128, help="of each answer (%(default)s)")
    made.add_argument(
        "--mixed",
        action="store_true",
        help="answers from half as long to one and a half, so that requests begin and end at all times",
    )
    made.add_argument("--tp", type=int, default=1, help="cards for each server, all on the same ones (%(default)s)")
    made.add_argument(
        "--memory", type=float, default=0.8, help="share of what is free on a card when a server starts (%(default)s)"
    )
    made.add_argument("--port", type=int, default=21000, help="first of the ports (%(default)s)")
    made.add_argument(
        "--acceptance-by-steps",
        action="store_true",
        help="simulate 1.78, 2.40 and 2.88 tokens a round for 1, 2 and 3 steps; SGLang itself simulates 2, 2.88, 2.88",
    )
    made.add_argument(
        "--collect-garbage",
        action="store_true",
        help="leave the servers' garbage collection as SGLang has it, which the deployed service does not",
    )
    made.add_argument("--commit", default="", help="commit of this project, for the rows")
    made.add_argument("--seconds-budget", type=float, metavar="S", help="begin nothing that would end later than this")
    made.add_argument("--no-steps", action="store_true", help="leave out the load that steps at the end")
    made.add_argument("--resume", action="store_true", help="go on in OUT with the points that are missing")
    made.add_argument("--dry-run", action="store_true", help="print what would be done and how long; start nothing")
    return made


def plan_of(options: argparse.Namespace) -> Plan:
    """The plan that the options ask for; raises BenchError if there cannot be one."""
    for problem in problems(options):
        raise BenchError(problem)
    workload = _workload(options)
    arms = tuple(arm for arm in ARMS if arm in options.arms)
    return Plan(arms, tuple(sorted(options.levels)), options.repeats, options.window, options.lives, workload)


def _workload(options: argparse.Namespace) -> Workload:
    return Workload(options.prompt_tokens, options.new_tokens, mixed=options.mixed)


def problems(options: argparse.Namespace) -> list[str]:
    """What is wrong with the options, a sentence each; empty if nothing is."""
    found = [f"--{name} is {value}, not above 0" for name, value in _positive(options) if value <= 0]
    found += [wrong] if (wrong := not_shared(options.tp)) else []
    found += [f"--arms: {arm} is none of {', '.join(ARMS)}" for arm in options.arms if arm not in ARMS]
    found += [f"--levels: {level} is no number of clients from 1" for level in options.levels if level < 1]
    found += [
        f"--levels: {level} is more than the {MOST_REQUESTS} requests that a server decodes at once"
        for level in options.levels
        if level > MOST_REQUESTS
    ]
    for name, values in (("arms", options.arms), ("levels", options.levels)):
        found += [f"--{name}: {value} is there twice" for value in dict.fromkeys(values) if values.count(value) > 1]
    if DYNAMIC in options.arms and not {"full", "plain"} <= set(options.arms):
        found.append(f"--arms: {DYNAMIC} needs full and plain, by which its threshold is found")
    longest = options.prompt_tokens + _workload(options).longest
    if longest > CONTEXT:
        found.append(f"a request of up to {longest} tokens is longer than the model's context of {CONTEXT}")
    loads = [(max(options.levels), longest)]
    if not options.no_steps:
        most = max(phase.clients for phase in PHASES)
        loads.append((most, options.prompt_tokens + stepped(_workload(options)).longest))
    found += [
        f"{clients} requests of up to {tokens} tokens do not fit into the {KV_TOKENS} tokens of the KV cache"
        for clients, tokens in loads
        if clients * tokens > KV_TOKENS
    ]
    if options.memory >= 1:
        found.append(f"--memory is {options.memory}, not a share below 1")
    if not options.stock and {"base", "full_stock"} & set(options.arms):
        found.append("--stock is missing: base and full_stock are measured on the unpatched SGLang that it finds")
    return found


def _positive(options: argparse.Namespace) -> list[tuple[str, float]]:
    names = ("repeats", "window", "lives", "prompt-tokens", "new-tokens", "memory", "port")
    values = [(name, getattr(options, name.replace("-", "_"))) for name in names]
    return values if options.seconds_budget is None else [*values, ("seconds-budget", options.seconds_budget)]
