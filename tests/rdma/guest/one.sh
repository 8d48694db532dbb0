# One host with a software RDMA device: a pair of virtual Ethernet interfaces, and rxe or siw (TYPE) over one of them. The other
# one is in a network namespace, which stands for a host that has no RDMA device. Large packets: each costs an emulator much.
ulimit -l unlimited
ip link set lo up
ip netns add far
ip link add rdma0 mtu 9000 type veth peer name rdma1 mtu 9000 netns far
ip addr add 10.77.0.1/24 dev rdma0
ip link set rdma0 up
ip -n far addr add 10.77.0.2/24 dev rdma1
ip -n far link set rdma1 up
rdma link add "${TYPE}0" type "$TYPE" netdev rdma0 || exit 99
failed=
for test in $TESTS; do
  echo "# $test"
  "$NODE" $NODE_ARGUMENTS "$test" || failed="$failed $test"
done
# As for any test file: docs/decisions/0050-second-chance.md.
status=0
for test in $failed; do
  echo "=== FAILED THE FIRST TIME: $test; a second time:"
  if "$NODE" $NODE_ARGUMENTS "$test"; then echo "=== PASSED ONLY THE SECOND TIME: RDMA, $test"
  else echo "not ok - $test"; status=1; fi
done
exit $status
