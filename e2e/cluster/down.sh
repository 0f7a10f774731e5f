#!/bin/bash
# down.sh: end the cluster and remove all that it made, except the caches.
. "$(dirname "$0")/env.sh"
NODES_MAX=9
[ -d "$STATE" ] || exit 0

for i in $(seq "$NODES_MAX"); do
  if [ -d "$STATE/node$i" ]; then "$HERE/node.sh" kill "$i"; fi
done
for file in "$STATE"/pid/*; do
  if [ -f "$file" ]; then kill "$(cat "$file")" 2>/dev/null || true; fi
done
for file in "$STATE"/pid/*; do
  [ -f "$file" ] || continue
  for _ in $(seq 30); do
    kill -0 "$(cat "$file")" 2>/dev/null || break
    sleep 0.2
  done
  kill -9 "$(cat "$file")" 2>/dev/null || true
done
awk -v state="$STATE/" 'index($2, state) == 1 {print $2}' /proc/mounts | sort -r |
  while read -r mount; do umount -l "$mount" || true; done
for i in $(seq "$NODES_MAX"); do
  ip netns del "lk-node$i" 2>/dev/null || true
  ip link del "lkv$i" 2>/dev/null || true
done
ip link del lk0 2>/dev/null || true
iptables-save | grep -v KUBE- | iptables-restore
rm -rf "$STATE"
