"""The page of one run."""

from collections.abc import Sequence

from . import answer, groups, pictures, sections, tables
from .groups import Group
from .layout import Page, Part, Section
from .run_files import Run


def page(run: Run, found: Sequence[Group], command: str) -> Page:
    """The page: the answer first, then what it comes from; ``command``: what was typed to get it."""
    wanted = [
        Section("figures", "Figures", [_figures(run, group, found) for group in found]),
        sections.reasons(run, found),
        sections.measured(run, found),
        sections.baseline(found),
        sections.marked(run),
        sections.check(run),
        _settings(found),
        sections.fingerprint(run),
        sections.plan(run, command),
    ]
    return Page(
        f"Speculation on {run.plan['host']}",
        f"Run {run.plan['run']}. {answer.state(run)}",
        [run.plan["note"]] if run.plan.get("note") else [],
        answer.lead(run, found),
        [section for section in wanted if section],
    )


def _figures(run: Run, group: Group, found: Sequence[Group]) -> Part:
    drawn = pictures.of_group(run, group, sections.suffix(group, found))
    return Part(
        groups.titled(group, found), [] if drawn else ["No point counts: there is nothing to draw."], pictures=drawn
    )


def _settings(found: Sequence[Group]) -> Section | None:
    parts = [
        Part(
            f"{context} tokens of context" if len({group.context for group in found}) > 1 else "",
            ["Each has servers of its own, so that a ratio holds the noise of both."],
            pictures=[pictures.of_settings(same, f"-{context}")],
            tables=[tables.settings(same, f"settings-{context}")],
        )
        for context, same in sections.by_context(found).items()
    ]
    return Section("settings", "Server settings compared", parts) if parts else None
