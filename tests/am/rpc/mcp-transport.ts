/** `Transport` of @modelcontextprotocol/sdk over a message port, and the parts of the SDK that the tests use. */
import type { FastPort } from '../../../am/rpc/index.ts'

export class PortTransport {
  onmessage?: (message: unknown) => void
  onerror?: (error: Error) => void
  onclose?: () => void
  readonly #port: FastPort
  constructor(port: FastPort) {
    this.#port = port
  }
  async start(): Promise<void> {
    this.#port.on('message', message => this.onmessage?.(message))
    this.#port.on('messageerror', error => this.onerror?.(error))
    this.#port.on('close', () => this.onclose?.())
  }
  async send(message: unknown): Promise<void> {
    this.#port.postMessage(message)
  }
  async close(): Promise<void> {
    this.#port.close()
  }
}

interface About {
  readonly name: string
  readonly version: string
}

interface Answer {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[]
}

export interface Sdk {
  readonly McpServer: new (
    about: About,
  ) => {
    registerTool(name: string, about: { description: string }, tool: () => Promise<Answer>): unknown
    connect(transport: PortTransport): Promise<void>
  }
  readonly Client: new (
    about: About,
  ) => {
    connect(transport: PortTransport): Promise<void>
    listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>
    callTool(call: { name: string }): Promise<Answer>
    onclose?: () => void
  }
}

/** Undefined where the package is not installed. */
export async function loadSdk(): Promise<Sdk | undefined> {
  const sdk = '@modelcontextprotocol/sdk'
  try {
    const [{ McpServer }, { Client }] = await Promise.all([
      import(`${sdk}/server/mcp.js`),
      import(`${sdk}/client/index.js`),
    ])
    return { McpServer, Client }
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}
