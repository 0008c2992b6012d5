#!/bin/sh
# What the tests need beyond Python packages: MCP servers of Node's and esbuild, a Chromium for the report's page, and real servers
# for the worlds that agents are put in; and the distribution's own Python.
set -eu

node=.venv/node
if ! command -v npm >/dev/null 2>&1; then
  echo "tests: npm is missing, so the tests with MCP servers of Node's and of the page's bundle are skipped (fatal with CI=true)." >&2
elif ! cmp -s tests/node/package-lock.json "$node/installed.json"; then
  mkdir -p "$node"
  cp tests/node/package.json tests/node/package-lock.json "$node/"
  npm ci --prefix "$node" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  cp tests/node/package-lock.json "$node/installed.json"
fi

missing=""
[ -x /usr/bin/chromium ] || missing="$missing chromium"
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing="$missing postgresql"
[ -x /usr/sbin/mariadbd ] || missing="$missing mariadb-server"
[ -x /usr/bin/redis-server ] || missing="$missing redis-server"
command -v strace >/dev/null 2>&1 || missing="$missing strace"
/usr/bin/python3 -c "import venv" 2>/dev/null || missing="$missing python3"
if [ -z "$missing" ]; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "tests: these are missing, so their tests are skipped (fatal with CI=true):$missing" >&2
  echo "tests: on Debian, as root: apt-get update && apt-get install -y --no-install-recommends$missing" >&2
  exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086  # one word a package
if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing; } >"$log" 2>&1; then
  echo "tests: these could not be installed, so their tests are skipped (fatal with CI=true):$missing" >&2
  tail -n 5 "$log" >&2
fi
