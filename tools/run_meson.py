"""meson with the tools of the interpreter that runs it, whatever is on PATH.

The backend calls meson by this file. So does build.ninja when a meson.build has changed, in any environment:
with another ninja than the first, everything would be compiled anew, and without one nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module

from build_backend import name_tools

if __name__ == "__main__":
    name_tools()
    sys.exit(import_module("mesonbuild.mesonmain").main())
