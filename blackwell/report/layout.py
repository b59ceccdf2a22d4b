"""What a page consists of, as values that a template shows: nothing here knows where they come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Value:
    """A cell of a table: a text, what stands small beside it, and how it is shown (``good``, ``bad``, ``doubt``)."""

    text: str
    beside: str = ""
    kind: str = ""


Row = Sequence[Value | str]


@dataclass(frozen=True)
class Table:
    """``rows`` by group, whose name stands above them; one group without a name has none. The first cell names a row.

    ``name`` tells it from others of the page. ``words``: its cells are text, not numbers. ``folded``: it is shown when
    somebody asks for it.
    """

    name: str
    head: Sequence[str]
    groups: Mapping[str, Sequence[Row]]
    caption: str = ""
    words: bool = False
    folded: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure: file name without its ending, and what draws its PNG for each theme, by name, when it is asked for."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Mapping[str, bytes]]

    @cached_property
    def images(self) -> Mapping[str, bytes]:
        """The PNG data by the name of a theme."""
        return self.draw()


@dataclass(frozen=True)
class Part:
    """``texts``: paragraphs; ``items``: a list; ``code``: text to copy, with what it is."""

    title: str = ""
    texts: Sequence[str] = ()
    items: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    code: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """``name``: what an address ends in that leads to it."""

    name: str
    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Page:
    """``notes``: what has to be known before any number. ``lead``: the answer, by what it is of, a sentence each."""

    title: str
    subtitle: str
    notes: Sequence[str]
    lead: Mapping[str, Sequence[str]]
    sections: Sequence[Section]

    @property
    def pictures(self) -> list[Picture]:
        """All figures, in order."""
        return [picture for section in self.sections for part in section.parts for picture in part.pictures]
