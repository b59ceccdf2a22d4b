"""A page as one HTML file that needs nothing else: styles and figures are in it, and there is no script."""

import base64

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from blackwell import paths

from .layout import Page, Picture, Value

TEMPLATE = "report.html.j2"


def render(page: Page) -> str:
    """The HTML; what a run or its host has written is escaped."""
    environment = Environment(
        loader=FileSystemLoader(paths.ROOT / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cell": _cell, "address": _address}
    return environment.get_template(TEMPLATE).render(page=page)


def _cell(value: Value | str) -> Value:
    return value if isinstance(value, Value) else Value(value)


def _address(picture: Picture, theme: str) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.images[theme]).decode()}"
