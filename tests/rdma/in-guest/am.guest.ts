/** Active messages over RDMA: the tests of endpoints that run over every driver, over this one. */
process.env.FASTSOCKETS_TEST_DRIVER = 'verbs'
await import('../../am/endpoint-messages.test.ts')
await import('../../am/endpoint-calls.test.ts')
await import('../../am/endpoint-long.test.ts')
