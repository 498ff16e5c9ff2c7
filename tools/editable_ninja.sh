#!/bin/sh
# ninja for an editable install. meson-python runs it in the build folder before the first `import coterie` of a process.
# `pip install -e .` builds in isolation and deletes ninja, Cython and NumPy's headers afterwards. Without them nothing can
# be compiled again, so imports use the modules as they are, unless a source has changed since.
if [ -n "$COTERIE_NINJA" ]; then # set by the build backend
    exec "$COTERIE_NINJA" "$@"
fi
ninja=$(cat .ninja-command)
if [ -x "$ninja" ]; then
    exec "$ninja" "$@"
fi
root=$(dirname "$(dirname "$0")")
changed=$(find "$root/meson.build" "$root/src" "$root/tools/cythonize.py" -newer .ninja_log \
    \( -name '*.pyx' -o -name '*.pxd' -o -name '*.[ch]' -o -name meson.build -o -name cythonize.py \) | head -n 1)
if [ -n "$changed" ]; then
    echo "FAILED: coterie" # meson-python shows what follows this line
    echo "$changed has changed since coterie was compiled, and the tools of the isolated build are gone:" \
        "run \`pip install --editable .\` again, or \`make compile\`, which keeps its tools"
    exit 1
fi
echo 'ninja: no work to do.'
