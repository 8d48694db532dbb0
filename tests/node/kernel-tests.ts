/**
 * Tests of Node 20 that pass plain and cannot pass relinked, or cannot always, because they look at the kernel's handle
 * itself or at the moment at which Node loads a part of itself, each with the reason. docs/reference/compatibility.md has the same
 * list, and tests/node/runner.test.ts compares the two.
 */
const TCP_METHODS = "counts calls of a method that it puts into the prototype of Node's TCP handle"
const ENGINES = 'replaces a native binding before node:tls is loaded, which the preload has loaded already'
const LISTENS = 'counts how often the primary of a cluster listens: it does so for the bootstrap, too'
const HOOKS =
  'wants hooks to hear of the beginning of everything that they hear of: what all sockets share is older than the hooks'
const RESOURCES = "compares the asynchronous resources of the kernel's handles"
const IMMEDIATES =
  'stays in a domain for good, in which Node warns at every immediate: fast sockets have some'
const PERMISSION = 'gives Node no right to read files: it cannot read a preload, either'
const TRACES = "counts what the kernel's handles write into a trace"
const PARSER =
  "attaches the parser of http, from a module that is Node's own, to a handle that is not connected"
const PRELOAD = 'lets a worker start without descriptors: Node fails at the preload with another error'

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
