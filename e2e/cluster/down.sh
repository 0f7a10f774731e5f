#!/bin/bash
# down.sh: end the cluster and remove all that it made, except the caches.
. "$(dirname "$0")/env.sh"
NODES_MAX=9
[ -d "$STATE" ] || exit 0
need_root

processes() { # Its disk is thrown away: nothing needs to be stopped cleanly.
  local i file pid
  for i in $(seq "$NODES_MAX"); do
    if [ -d "$STATE/node$i" ]; then "$HERE/node.sh" kill "$i"; fi
  done
  for file in "$STATE"/pid/*; do
    if [ -f "$file" ] && pid=$(cat "$file") && alive "$pid"; then
      kill -9 "$pid" 2>/dev/null || true
      wait_for 10 gone "$pid"
    fi
  done
}

gone() { ! alive "$1"; }

containers() { # What containerd and runc keep elsewhere.
  local folder id address
  for folder in "$STATE"/node*/containerd/state/io.containerd.runtime.v2.task/k8s.io/*; do
    [ -d "$folder" ] || continue
    id=${folder##*/}
    address=$(cat "$folder/address" 2>/dev/null || true)
    rm -rf "/run/containerd/runc/k8s.io/$id" ${address:+"${address#unix://}"}
    find /sys/fs/cgroup -depth -type d -path "*/k8s.io/$id*" -exec rmdir {} + 2>/dev/null || true
  done
}

network() {
  local i name tables rules
  for i in $(seq "$NODES_MAX"); do
    ip netns del "lk-node$i" 2>/dev/null || true
    ip link del "lkv$i" 2>/dev/null || true
  done
  ip link del lk0 2>/dev/null || true
  [ -f "$STATE/namespaces" ] || return 0
  for name in $(ip netns list | awk '/^cni-/ {print $1}'); do
    grep -qxF "$name" "$STATE/namespaces" || ip netns del "$name" || true
  done
  sysctl -qw net.ipv4.ip_forward="$(cat "$STATE/ip_forward")"
  for tables in iptables ip6tables; do
    if rules=$("$tables-save" 2>/dev/null | grep -v -e KUBE- -e lk-cluster); then
      "$tables-restore" <<<"$rules"
    fi
  done
}

processes
awk -v state="$STATE/" 'index($2, state) == 1 {print $2}' /proc/mounts | sort -r |
  while read -r mount; do umount -l "$mount" || true; done
containers
network
rm -rf "$STATE"
find /var/log/containers -xtype l -delete 2>/dev/null || true
