"""The example on each page of a fault or check, as the site shows it, and the specs that run them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml
from docs_pages import REPO

from holdfast import plugins
from holdfast.protocols.fault import read_traits
from holdfast.spec.rules.fault_entry import FAMILIES
from site_plugins import CHECKS, FAULTS, plugin_pages

_YAML = re.compile(r"^```yaml *([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class PageExample(NamedTuple):
    """The first example of a page: whose it is, the words after its fence, and what it says."""

    section: str
    name: str
    words: tuple[str, ...]
    content: Any

    @property
    def needs_wire(self) -> bool:
        """Whether the fault cannot act on a function."""
        if self.section == "invariants":
            return False
        return read_traits(plugins.find(FAMILIES[self.section].registry, self.name)).wire_only

    @property
    def scenario(self) -> dict[str, Any]:
        """A scenario with the fault, called by its name."""
        return {"name": f"{self.section}.{self.name}", **self.content}


def page_examples() -> list[PageExample]:
    """Of every page."""
    written = [(REPO / name).read_text() for name in (FAULTS, CHECKS)]
    found = []
    for page, text in plugin_pages(*written):
        block = _YAML.search(text)
        assert block is not None, page
        found.append(PageExample(page.section, page.name, tuple(block[1].split()), yaml.safe_load(block[2])))
    return found


def scenarios(*sections: str, wire: bool = False) -> list[dict[str, Any]]:
    """Of the faults of these sections: those for the wire alone, or the others."""
    return [one.scenario for one in page_examples() if one.section in sections and one.needs_wire == wire]
