"""One colour, marker and line for each policy, everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Style(NamedTuple):
    """How a policy is drawn, and how its name is written in a legend."""

    label: str
    colour: str
    marker: str
    line: str


# Okabe and Ito's colours, told apart by people of every colour vision. A family shares its colour's
# neighbourhood; what explores uniformly is drawn solid, its counterpart dashed, so that grey prints work.
STYLES: Mapping[str, Style] = MappingProxyType(
    {
        "AutoCLUB": Style("AutoCLUB", "#A5112B", "d", "-"),
        "LinUCBOne": Style("LinUCB-One", "#7f7f7f", "s", ":"),
        "LinUCBInd": Style("LinUCB-Ind", "#000000", "D", ":"),
        "LinUCBOracle": Style("LinUCB, true clusters", "#b8a200", "*", ":"),
        "CLUB": Style("CLUB", "#E69F00", "o", "--"),
        "UniCLUB": Style("UniCLUB", "#D55E00", "o", "-"),
        "SCLUB": Style("SCLUB", "#56B4E9", "^", "--"),
        "UniSCLUB": Style("UniSCLUB", "#0072B2", "^", "-"),
        "PhaseUniCLUB": Style("PhaseUniCLUB", "#CC79A7", "v", "-."),
        "SACLUB": Style("SACLUB", "#E69F00", "P", "-"),
        "SASCLUB": Style("SASCLUB", "#0072B2", "X", "-"),
        "GOBLin": Style("GOB.Lin", "#009E73", "<", "-."),
        "GraphUCB": Style("GraphUCB", "#4B0092", ">", "-."),
    }
)

OTHER = Style("", "#8c564b", "h", "-")


def style(policy: str) -> Style:
    """The style of a policy; one that is not listed is brown."""
    return STYLES.get(policy, OTHER._replace(label=policy))
