"""Pages: what is theirs, and what came from data."""

from importlib.resources import files


def without_script(page: str) -> str:
    """A page without the one script that pages have."""
    own = files("groupwise.report").joinpath("templates", "page.js").read_text("utf-8")
    assert page.count(f"<script>{own}</script>") == 1
    return page.replace(f"<script>{own}</script>", "")
