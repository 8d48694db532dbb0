/** RPC over RDMA: services, streams and the death of a process, message ports, Connect. */
process.env.FASTSOCKETS_TEST_DRIVER = 'verbs'
await import('../../am/rpc/services.test.ts')
await import('../../am/rpc/ports.test.ts')
await import('../../am/rpc/connect.test.ts')
