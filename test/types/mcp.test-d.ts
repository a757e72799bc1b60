/** The types of `agent-tasks/mcp`: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import {
  agentConfigSchema,
  CONFIG_FILE_NAME,
  loadAgentConfig,
  parseAgentConfig,
  startMcpHttpServer,
  startMcpStdioServer,
  type AgentConfig,
  type McpHttpServer,
  type McpStdioServer,
} from 'agent-tasks/mcp'
import type { McpServerOptions } from '../../src/mcp/backend.js'
import type { AgentConfigInput } from '../../src/protocol/agent-config.js'
import type { LoadedConfig } from '../../src/mcp/config-file.js'
import type { McpHttpServerOptions } from '../../src/mcp/http.js'
import type { McpStdioServerOptions } from '../../src/mcp/stdio.js'

export async function aServerIsStartedFromAConfiguration(): Promise<void> {
  const config: AgentConfigInput = { subagents: [{ name: 'a', description: 'Does it.', command: 'node' }] }
  expectTypeOf(startMcpStdioServer({ config })).toEqualTypeOf<McpStdioServer>()
  expectTypeOf(await startMcpHttpServer({ config, port: 0 })).toEqualTypeOf<McpHttpServer>()
  expectTypeOf((await startMcpHttpServer()).url).toEqualTypeOf<string>()
  expectTypeOf<McpHttpServerOptions>().toExtend<McpServerOptions>()
  expectTypeOf<McpStdioServerOptions>().toExtend<McpServerOptions>()
  await using server = await startMcpHttpServer({ port: 0 })
  expectTypeOf(server.close()).toEqualTypeOf<Promise<void>>()
  startMcpStdioServer({ store: '.agent/tasks', session: 'mine' })
  await startMcpHttpServer({ store: '.agent/tasks', config: { store: 'tasks', session: 'mine' } })
  // @ts-expect-error a store is a folder
  startMcpStdioServer({ store: {} })
  // @ts-expect-error a port is a number
  void startMcpHttpServer({ port: '3500' })
  // @ts-expect-error a subagent has a command
  startMcpStdioServer({ config: { subagents: [{ name: 'a', description: 'b' }] } })
  // @ts-expect-error a server over stdio has no address
  startMcpStdioServer({ host: '127.0.0.1' })
}

export function aConfigurationHasItsDefaultsFilledIn(): void {
  const { config, folder, file }: LoadedConfig = loadAgentConfig()
  expectTypeOf(config).toEqualTypeOf<AgentConfig>()
  expectTypeOf(folder).toEqualTypeOf<string>()
  expectTypeOf(file).toEqualTypeOf<string | undefined>()
  expectTypeOf(parseAgentConfig({}, CONFIG_FILE_NAME).subagents[0]!.args).toEqualTypeOf<string[]>()
  expectTypeOf(agentConfigSchema.parse({})).toEqualTypeOf<AgentConfig>()
  // @ts-expect-error one of three
  parseAgentConfig({}, CONFIG_FILE_NAME).subagents[0]!.output = 'xml'
}
