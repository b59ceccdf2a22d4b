"""Looks which models are on a host, what would be fetched of the others, and whether that can work. Changes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hub_listing import ModelError, Source, listing
from model_store import amount, bytes_free, bytes_missing, damage, partial, space_problem


def look(asked: dict[str, Any], token: str | None) -> dict[str, Any]:
    """What is known of a model: ``complete``, ``problem``, and what is to be fetched: ``bytes``, ``said``.

    ``asked`` has ``hub``, ``repository``, ``revision``, ``path`` and ``variable``.
    """
    model = Path(asked["path"])
    if model.exists():
        problem = damage(model)
        return {"complete": not problem, "problem": f"{asked['variable']}: {problem}." if problem else "", "bytes": 0}
    source = Source(asked["hub"], asked["repository"], asked["revision"], token)
    try:
        files = listing(source)
    except ModelError as error:
        return {"complete": False, "problem": f"{asked['variable']}: {error}.", "bytes": 0}
    missing, whole = bytes_missing(files, partial(model)), sum(file.size for file in files)
    there = f", {amount(whole - missing)} of it are there" if missing < whole else ""
    said = f"{source} from {source.hub} into {model}: {len(files)} files, {amount(whole)}{there}"
    return {"complete": False, "problem": "", "bytes": missing, "said": said}


def looked(told: dict[str, Any]) -> dict[str, Any]:
    """What is known of each model that was asked for, by its unit, and every problem.

    ``told`` has ``host`` (its name in the inventory), ``directory``, ``token`` and ``models``.
    """
    models = {asked["unit"]: look(asked, told["token"] or None) for asked in told["models"]}
    directory = Path(told["directory"])
    problems = [model["problem"] for model in models.values() if model["problem"]]
    needed, free = sum(model["bytes"] for model in models.values()), bytes_free(directory)
    names = " and ".join(asked["repository"] for asked in told["models"] if models[asked["unit"]]["bytes"])
    if problem := space_problem(f"model_directory: {told['host']}, {names}", directory, needed, free):
        problems.append(f"{problem}.")
    return {"models": models, "problems": problems}


def main(told: dict[str, Any]) -> None:
    """Prints it as JSON."""
    json.dump(looked(told), sys.stdout)
