/**
 * Tests of Node 20 that pass plain and cannot pass relinked, or cannot always, because they look at the kernel's handle
 * itself or at the moment at which Node loads a part of itself, each with the reason. docs/compatibility.md has the same
 * list, and tests/node/runner.test.ts compares the two.
 */
const TCP_METHODS = "counts calls of a method that it puts into the prototype of Node's TCP handle"
const ENGINES = 'replaces a native binding before node:tls is loaded, which the preload has loaded already'
const LISTENS = 'counts how often the primary of a cluster listens: it does so for the bootstrap, too'
const FLOOD = "needs 10,000 frames in one turn of the event loop, which is a matter of the kernel's buffers"

export const KERNEL_TESTS: Readonly<Record<string, string>> = {
  'parallel/test-cluster-net-listen-backlog.js': LISTENS,
  'parallel/test-net-persistent-nodelay.js': TCP_METHODS,
  'parallel/test-net-persistent-ref-unref.js': TCP_METHODS,
  'parallel/test-tls-clientcertengine-unsupported.js': ENGINES,
  'parallel/test-tls-keyengine-unsupported.js': ENGINES,
  'sequential/test-http2-ping-flood.js': FLOOD,
  'sequential/test-http2-settings-flood.js': FLOOD,
}
