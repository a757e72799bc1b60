/** Seed 004's instances and its MCP handler, with functions of this process where the seed has a browser behind a socket. */

/** A tool. It returns the content of an MCP result. */
export type SeedTool = (args: Readonly<Record<string, unknown>>) => unknown

export interface SeedMCPRequest {
  readonly jsonrpc: '2.0'
  readonly id: string
  readonly method: string
  readonly params: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }
}

export interface SeedMCPResponse {
  readonly jsonrpc: '2.0'
  readonly id: string
  readonly result?: { readonly content: readonly unknown[]; readonly isError?: boolean }
  readonly error?: { readonly code: number; readonly message: string }
}

interface SeedInstance {
  readonly tools: Readonly<Record<string, SeedTool>>
  isConnected: boolean
}

export class SeedInstanceManager {
  readonly #instances = new Map<string, SeedInstance>()
  readonly #disconnectCallbacks: ((instanceId: string) => void)[] = []

  connect(instanceId: string, tools: Readonly<Record<string, SeedTool>>): void {
    this.#instances.set(instanceId, { tools, isConnected: true })
  }

  disconnect(instanceId: string): void {
    const instance = this.#instances.get(instanceId)
    if (instance === undefined) return
    instance.isConnected = false
    for (const callback of this.#disconnectCallbacks) callback(instanceId)
  }

  onDisconnect(callback: (instanceId: string) => void): void {
    this.#disconnectCallbacks.push(callback)
  }

  get(instanceId: string): SeedInstance | undefined {
    return this.#instances.get(instanceId)
  }

  firstConnected(): string | undefined {
    for (const [id, { isConnected }] of this.#instances) if (isConnected) return id
    return undefined
  }

  async handleMCPRequest({ id, method, params }: SeedMCPRequest): Promise<SeedMCPResponse> {
    if (method !== 'tools/call') {
      return { jsonrpc: '2.0', id, error: { code: -32601, message: `Method not found: ${method}` } }
    }
    const { name, arguments: args } = params
    const tool = this.#instances.get(String(args['instanceId']))?.tools[name]
    if (tool === undefined) return { jsonrpc: '2.0', id, error: { code: -32602, message: `Unknown tool: ${name}` } }
    const value = await tool(args)
    const content = value === undefined ? [] : [{ type: 'text', text: JSON.stringify(value) }]
    return { jsonrpc: '2.0', id, result: { content } }
  }
}
