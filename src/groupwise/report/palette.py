"""The colours of figures and pages, light and dark.

The series are those of Okabe and Ito, which people with any colour vision can tell apart. In files
figures have the light colours; on a page each becomes the style sheet's variable of its name.
"""

LIGHT = {
    "ink": "#1b2430",
    "faint": "#5c6773",
    "rule": "#d5dae0",
    "series-0": "#0072b2",
    "series-1": "#d55e00",
    "series-2": "#009e73",
    "series-3": "#aa4499",
    "series-4": "#6b7280",
}
DARK = {
    "ink": "#e6e9ed",
    "faint": "#9aa5b1",
    "rule": "#38424d",
    "series-0": "#56b4e9",
    "series-1": "#ff9c4a",
    "series-2": "#3fd0a4",
    "series-3": "#e08bd2",
    "series-4": "#b6bfca",
}
SERIES = [LIGHT[name] for name in LIGHT if name.startswith("series-")]
