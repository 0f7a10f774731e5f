#!/bin/bash
# node.sh start|kill|cut|heal I: start node I; kill it like a power cut; cut or heal its network.
. "$(dirname "$0")/env.sh"
(($# == 2)) || { echo 'usage: node.sh start|kill|cut|heal I' >&2; exit 2; }
need_root
i=$2 namespace=lk-node$2 folder=$STATE/node$2

in_namespace() { nsenter --net="/run/netns/$namespace" "$@"; }

network() {
  if ip netns list | grep -qw "$namespace"; then
    ip link set "lkv$i" up
    return
  fi
  ip netns add "$namespace"
  ip link add "lkv$i" type veth peer name eth0 netns "$namespace"
  ip link set "lkv$i" master lk0 up
  in_namespace ip addr add "$(node_ip "$i")/24" dev eth0
  in_namespace ip link set eth0 up
  in_namespace ip link set lo up
  in_namespace ip route add default via "$HOST_IP"
  in_namespace sysctl -qw net.ipv4.ip_forward=1
  ip route replace "10.244.$i.0/24" via "$(node_ip "$i")"
}

containerd_files() {
  cat >"$folder/containerd.toml" <<T
version = 2
root = "$folder/containerd/root"
state = "$folder/containerd/state"
[grpc]
  address = "$(socket "$i")"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "lk.local/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$folder/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
T
  cat >"$folder/cni/10-lk.conflist" <<T
{"cniVersion": "0.4.0", "name": "lk$i", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$folder/ipam",
            "ranges": [[{"subnet": "10.244.$i.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
T
}

kubelet_files() {
  echo "nameserver $HOST_IP" >"$folder/resolv.conf"
  cat >"$folder/kubelet.yaml" <<T
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  x509: {clientCAFile: $STATE/pki/ca.crt}
  webhook: {enabled: false}
  anonymous: {enabled: false}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix://$(socket "$i")
failSwapOn: false
failCgroupV1: false
resolvConf: $folder/resolv.conf
clusterDNS: [$HOST_IP]
clusterDomain: cluster.local
imageGCHighThresholdPercent: 100
evictionHard: {nodefs.available: 1%, imagefs.available: 1%, memory.available: 100Mi}
nodeStatusUpdateFrequency: 2s
nodeStatusReportFrequency: 10s
syncFrequency: 10s
maxPods: 200
podLogsDir: $folder/pod-logs
tlsCertFile: $STATE/pki/kubelet$i.crt
tlsPrivateKeyFile: $STATE/pki/kubelet$i.key
T
}

start_node() {
  mkdir -p "$folder/cni"
  network
  containerd_files
  kubelet_files
  # nsenter, not `ip netns exec`: that one hides the cgroups.
  start "containerd$i" nsenter --net="/run/netns/$namespace" \
    containerd -c "$folder/containerd.toml"
  wait_for 30 on_node "$i" version
  "$HERE/load.sh" --pause "$i"
  start "kubelet$i" nsenter --net="/run/netns/$namespace" "$KUBE" kubelet \
    --config="$folder/kubelet.yaml" --kubeconfig="$STATE/pki/node$i.kubeconfig" \
    --hostname-override="node$i" --node-ip="$(node_ip "$i")" \
    --root-dir="$folder/kubelet" --cert-dir="$folder/kubelet-pki"
  start "proxy$i" nsenter --net="/run/netns/$namespace" "$KUBE" proxy \
    --kubeconfig="$STATE/pki/proxy.kubeconfig" --cluster-cidr=10.244.0.0/16 \
    --hostname-override="node$i" --conntrack-max-per-core=0
}

containers() { # Process ids of all containers of the node, whether containerd answers or not.
  local shim
  for shim in $(pgrep -f "containerd-shim.* -address $(socket "$i")"); do
    pgrep -P "$shim" || true
  done
}

power_cut() { # The network goes first: a machine without power says no goodbye to its peers.
  ip link set "lkv$i" down 2>/dev/null || true
  local pids daemon pid
  pids=$(ip netns pids "$namespace" 2>/dev/null; containers)
  for daemon in kubelet proxy containerd; do
    pid=$(cat "$STATE/pid/$daemon$i" 2>/dev/null) && alive "$pid" && pids+=" $pid"
    rm -f "$STATE/pid/$daemon$i"
  done
  # shellcheck disable=SC2086 # a list of numbers
  if [ -n "$pids" ]; then kill -9 $pids 2>/dev/null || true; fi
}

case $1 in
start) start_node ;;
kill) power_cut ;;
cut) ip link set "lkv$i" down ;;
heal) ip link set "lkv$i" up ;;
*) echo 'usage: node.sh start|kill|cut|heal I' >&2; exit 2 ;;
esac
