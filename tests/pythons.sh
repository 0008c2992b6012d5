#!/bin/sh
# Prints every distinct Python from 3.11 on that this machine has, one path a version: the system's own, kept by pyenv, on PATH.
set -eu

versions=""
for python in /usr/bin/python3.[1-9][0-9] "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.[1-9][0-9]*/bin/python3 \
  $(for minor in 11 12 13 14 15 16; do command -v "python3.$minor" || true; done); do
  # asked, not believed: a shim of pyenv's is there for versions that cannot be started
  version=$("$python" -c 'import sys, venv; assert sys.version_info >= (3, 11); print(sys.version.split()[0])' 2>/dev/null) || continue
  case " $versions " in
    *" $version "*) ;;
    *) versions="$versions $version"; echo "$python" ;;
  esac
done
