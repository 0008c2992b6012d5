#!/bin/sh
# Runs a command against a docker engine of its own, which is gone afterwards: engine.sh COMMAND...
# Needs root, dockerd (apt-get install docker.io) and unshare. The engine has its own mounts and its own network, with no
# way out; the v2 hierarchy of cgroups is taken away there, as the engine cannot use it beside the older one.
set -eu
home=$(mktemp -d /tmp/holdfast-engine-XXXXXX)
chmod 711 "$home"
unshare --mount --net --propagation private sh -c '
    umount /sys/fs/cgroup/unified 2>/dev/null
    exec dockerd --host "unix://$1/docker.sock" --data-root "$1/data" --exec-root "$1/exec" --pidfile "$1/pid" \
        --bridge=none --iptables=false --ip6tables=false --userland-proxy=false >"$1/log" 2>&1
' sh "$home" &
engine=$!
trap 'kill "$engine" 2>/dev/null; wait "$engine" 2>/dev/null || true; rm -rf "$home"' EXIT
export DOCKER_HOST="unix://$home/docker.sock"
tries=0
until docker version >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 150 ] || ! kill -0 "$engine" 2>/dev/null; then
        echo "the engine did not start:" >&2
        tail -20 "$home/log" >&2
        exit 1
    fi
    sleep 0.2
done
"$@"
