# One of two hosts that are joined by a virtual wire: ADDRESS is its own, ROLE says what it does, and without RXE it has
# no RDMA device.
ulimit -l unlimited
ip link set lo up
wire=$(ls /sys/class/net | grep -v '^lo$' | head -n 1)
ip addr add "$ADDRESS/24" dev "$wire"
ip link set "$wire" up
if [ -n "$RXE" ]; then rdma link add rxe0 type rxe netdev "$wire" || exit 99; fi
"$NODE" --import "$REGISTER" "$PROGRAM" "$ROLE"
