"""Provide URDF names that would end a quotation in one language or another."""

HOSTILE_NAMES = [
    "$(touch PWNED)",
    "`touch PWNED`",
    "tip; touch PWNED #",
    "'; touch PWNED; '",
    '"; touch PWNED; "',
    "*/ int main(void){return 7;} /*",
    '"""\nimport os'.replace("\n", " "),
    "ends with a backslash\\",
    "??/",
    "%s %n {tip} {0}",
    "yes",
    "- list: of, [yaml] #",
    "&anchor",
    "<b>&amp;</b>",
    "--help",
    "关节 é",
]
