/**
 * Tests of Node 20 that pass plain and cannot pass relinked, or cannot always, because they look at the kernel's handle
 * itself or at the moment at which Node loads a part of itself, each with the reason. docs/reference/compatibility.md has the same
 * list, and tests/node/runner.test.ts compares the two.
 */
const TCP_METHODS = "counts calls of a method of Node's TCP handle"
const ENGINES = 'replaces a native binding before node:tls loads; the preload has loaded it'
const LISTENS = 'counts how often the primary listens: the bootstrap listens too'
const HOOKS = 'wants an init event for every object: those that all sockets share are older than the hooks'
const RESOURCES = "compares the asynchronous resources of the kernel's handles"
const IMMEDIATES = 'stays in a domain, where Node warns at every immediate: fast sockets use some'
const PERMISSION = 'gives Node no right to read files, thus no preload'
const TRACES = "counts what the kernel's handles write into a trace"
const PARSER = "attaches Node's internal HTTP parser to an unconnected handle"
const PRELOAD = 'starts a worker without descriptors: Node fails at the preload with another error'

export const KERNEL_TESTS: Readonly<Record<string, string>> = {
  'async-hooks/test-filehandle-no-reuse.js': HOOKS,
  'async-hooks/test-graph.http.js': RESOURCES,
  'async-hooks/test-graph.pipeconnect.js': RESOURCES,
  'async-hooks/test-graph.shutdown.js': RESOURCES,
  'async-hooks/test-graph.tcp.js': RESOURCES,
  'async-hooks/test-graph.tls-write-12.js': RESOURCES,
  'async-hooks/test-graph.tls-write.js': RESOURCES,
  'async-hooks/test-http-agent-handle-reuse-parallel.js': HOOKS,
  'async-hooks/test-http-agent-handle-reuse-serial.js': HOOKS,
  'async-hooks/test-pipeconnectwrap.js': RESOURCES,
  'async-hooks/test-shutdownwrap.js': RESOURCES,
  'async-hooks/test-tcpwrap.js': RESOURCES,
  'async-hooks/test-tlswrap.js': RESOURCES,
  'async-hooks/test-writewrap.js': RESOURCES,
  'parallel/test-cluster-net-listen-backlog.js': LISTENS,
  'parallel/test-domain-multi.js': IMMEDIATES,
  'parallel/test-net-persistent-nodelay.js': TCP_METHODS,
  'parallel/test-net-persistent-ref-unref.js': TCP_METHODS,
  'parallel/test-permission-warning-flags.js': PERMISSION,
  'parallel/test-tls-clientcertengine-unsupported.js': ENGINES,
  'parallel/test-tls-keyengine-unsupported.js': ENGINES,
  'parallel/test-trace-events-net.js': TRACES,
  'parallel/test-worker-init-failure.js': PRELOAD,
  'sequential/test-http-regr-gh-2928.js': PARSER,
}
