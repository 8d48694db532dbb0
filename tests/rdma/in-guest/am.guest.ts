/** Active messages over RDMA: the tests of endpoints that run over every driver, over this one. */
process.env.FASTSOCKETS_TEST_DRIVER = 'verbs'
await import('../../am/endpoint-messages.test.ts')
