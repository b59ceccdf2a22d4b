"""What a page shows, read from its HTML: text, tables and where it points."""

from dataclasses import replace
from html.parser import HTMLParser

from blackwell.report import page as pages

VOID = {"meta", "img", "source", "br", "link"}


def without_figures(page):
    """A page of which nothing has to be drawn."""
    sections = [replace(one, parts=[replace(part, pictures=()) for part in one.parts]) for one in page.sections]
    return replace(page, sections=sections)


def rendered(page, *, figures=False):
    return pages.render(page if figures else without_figures(page))


class Page(HTMLParser):
    """``tables``: rows by name and group, a cell is text, what stands small beside it, kind; ``pointed``: addresses."""

    def __init__(self, html):
        super().__init__()
        self.tables, self.heads, self.pointed, self.tags, self.notes = {}, {}, [], [], []
        self.texts, self._open = [], []
        self._table = self._group = self._row = self._cell = None
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.pointed += [attributes[name] for name in ("src", "srcset", "href") if name in attributes]
        if tag not in VOID:
            self._open.append((tag, attributes.get("class", "")))
        if tag == "table":
            self._table = self.tables.setdefault(attributes["id"], {})
            self.heads[attributes["id"]] = []
            self._name = attributes["id"]
        elif tag == "tbody":
            self._group = self._table.setdefault(attributes.get("data-group", ""), [])
        elif tag == "tr":
            self._row = []
        elif tag in ("td", "th"):
            self._cell = ["", "", attributes.get("class", "")]

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag
        if tag in ("td", "th") and self._row is not None:
            self._row.append(tuple(self._cell))
            self._cell = None
        elif tag == "tr" and self._group is None:
            self.heads[self._name] = [cell[0] for cell in self._row]
        elif tag == "tr" and len(self._row) > 1:
            self._group.append(self._row)
        elif tag == "table":
            self._table = self._group = None

    def handle_data(self, data):
        inside = [tag for tag, _ in self._open]
        if "style" in inside:
            return
        self.texts.append(data)
        if self._cell is not None:
            self._cell["small" in inside] += data
        if self._open and self._open[-1] == ("p", "note"):
            self.notes.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def column(self, table, group, head):
        """What a column has, by what the first one has."""
        number = self.heads[table].index(head)
        return {row[0][0]: row[number] for row in self.tables[table][group]}
