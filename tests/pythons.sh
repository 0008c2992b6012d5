#!/bin/sh
# Prints every Python from 3.11 on that this machine has, one of each minor version: on PATH, or kept by pyenv.
set -eu

minor=11
while [ "$minor" -le 30 ]; do
  for python in "$(command -v "python3.$minor" || true)" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python3; do
    # asked, not believed: a shim of pyenv's is there for versions that cannot be started
    if [ -x "$python" ] && "$python" -c "import sys, venv; sys.exit(sys.version_info[:2] != (3, $minor))" 2>/dev/null; then
      echo "$python"
      break
    fi
  done
  minor=$((minor + 1))
done
