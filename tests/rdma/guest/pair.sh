# One of two hosts that are joined by a virtual wire: ADDRESS is its own, ROLE says what it does. The one that calls has no
# RDMA device at first, and then has one.
ulimit -l unlimited
ip link set lo up
wire=$(ls /sys/class/net | grep -v '^lo$' | head -n 1)
ip addr add "$ADDRESS/24" dev "$wire"
ip link set "$wire" up
run() { "$NODE" --import "$REGISTER" "$PROGRAM" "$ROLE"; }
if [ "$ROLE" = call ]; then WIRE=tcp REASON=REMOTE_HOST run || exit 1; fi
rdma link add rxe0 type rxe netdev "$wire" || exit 99
WIRE=verbs LAST=yes run
