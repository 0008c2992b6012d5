#!/bin/sh
# What the tests need beyond Python packages: MCP servers of Node's, and a Chromium for the report's page.
set -eu

node=.venv/node
if ! command -v npm >/dev/null 2>&1; then
  echo "tests: npm is missing, so the tests with MCP servers of Node's are skipped (fatal with CI=true)." >&2
elif ! cmp -s tests/node/package-lock.json "$node/installed.json"; then
  mkdir -p "$node"
  cp tests/node/package.json tests/node/package-lock.json "$node/"
  npm ci --prefix "$node" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  cp tests/node/package-lock.json "$node/installed.json"
fi

if [ -x /usr/bin/chromium ]; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "tests: /usr/bin/chromium is missing, so the browser tests are skipped (fatal with CI=true)." >&2
  echo "tests: on Debian, as root: apt-get update && apt-get install -y --no-install-recommends chromium" >&2
  exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; } >"$log" 2>&1; then
  echo "tests: chromium could not be installed, so the browser tests are skipped (fatal with CI=true):" >&2
  tail -n 5 "$log" >&2
fi
