"""Colours by meaning, the same in text and plots; those of data follow Okabe and Ito, safe for the colour-blind."""

LIGHT = {
    "paper": "#ffffff",
    "panel": "#f5f6f8",
    "ink": "#1a1d21",
    "muted": "#5b6470",
    "line": "#d9dde2",
    "measured": "#4a525c",
    "identified": "#0072b2",
    "band": "#d3e6f3",
    "truth": "#00805d",
    "uncompensated": "#d55e00",
    "urdf": "#e8b878",
    "wrong": "#b3261e",
}
"""Figures are drawn in these; each value stands for its name, so no two may be equal."""

DARK = {
    "paper": "#121518",
    "panel": "#1b2025",
    "ink": "#e9ebee",
    "muted": "#a0a9b4",
    "line": "#353c44",
    "measured": "#c2c9d1",
    "identified": "#56b4e9",
    "band": "#1d3a4e",
    "truth": "#36c497",
    "uncompensated": "#f4924f",
    "urdf": "#8f6f45",
    "wrong": "#ff8a7a",
}
