"""Turns the docstrings of the package into Markdown, for the API page.

They are written for people who read code: underlined headings, ``name : text`` for parameters,
examples after ``>>>``. This is an extension of griffe, which mkdocstrings reads docstrings with.
"""

import re
from typing import Any

import griffe

HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ROLE = re.compile(r":\w+:`~?([^`]+)`")
ITEM = re.compile(r"^(\*{0,2}\w[\w, ]*?) : ", re.MULTILINE)
LISTS = ("Parameters", "Attributes")


class Markdown(griffe.Extension):
    """Rewrites every docstring as it is loaded."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        """Called by griffe for each module, class, function and attribute."""
        del kwargs
        if not obj.is_alias and obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text: str) -> str:
    """A docstring as Markdown.

    >>> print(markdown("Parameters\\n----------\\na : one.\\nb : two.\\n\\n>>> 1 + 1\\n2"))
    **Parameters**
    <BLANKLINE>
    - `a`: one.
    - `b`: two.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    text = ROLE.sub(r"`\1`", text)
    text = HEADING.sub(r"**\1**\n", text)
    parts = []
    for part in text.split("\n\n"):
        stripped = part.strip("\n")
        if stripped.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{stripped}\n```")
        elif ITEM.match(stripped) and parts and parts[-1].strip("*\n") in LISTS:
            parts.append(ITEM.sub(r"- `\1`: ", stripped))
        else:
            parts.append(stripped)
    return "\n\n".join(parts)
