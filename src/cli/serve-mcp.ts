/**
 * Serves MCP until the client has gone or a signal comes: over stdio, or over streamable HTTP. Standard output belongs to the
 * protocol; what there is to say goes to standard error.
 */
import { loadAgentConfig } from '../mcp/config-file.js'
import { startMcpHttpServer } from '../mcp/http.js'
import { startMcpStdioServer } from '../mcp/stdio.js'

/** What the command line says. */
export interface McpCommand {
  /** The configuration file; default: `agent-tasks.config.json` in the working directory, if it is there. */
  readonly config?: string | undefined
  /** Serve over HTTP. */
  readonly http?: boolean | undefined
  readonly host?: string | undefined
  readonly port?: number | undefined
}

/** How long everything may take to end, in ms; a program that is left then is killed with this process. */
const END_MS = 10_000

/**
 * Serves until the client has gone or a signal comes, and ends this process.
 * @throws ConfigFileError, InvalidSettingError; nothing was started then
 */
export async function serveMcp({ config: path, http = false, host, port }: McpCommand): Promise<void> {
  const { config, folder, file } = loadAgentConfig(path)
  const say = (line: string): void => console.error(`agent-tasks info: ${line}`)
  say(
    `configuration: ${file ?? 'none'}, ${config.subagents.length} subagent(s), ${config.instances.length} instance(s)`,
  )
  if (http) {
    const server = await startMcpHttpServer({
      ...{ config, folder },
      ...(host !== undefined && { host }),
      ...(port !== undefined && { port }),
    })
    endOnSignals(() => server.close())
    say(`MCP at ${server.url}`)
    return
  }
  const server = startMcpStdioServer({ config, folder })
  endOnSignals(() => server.close())
  void server.closed.then(() => process.exit(0))
}

function endOnSignals(close: () => Promise<void>): void {
  let isEnding = false
  const end = (): void => {
    // A second signal does not wait.
    if (isEnding) process.exit(1)
    isEnding = true
    setTimeout(() => process.exit(1), END_MS).unref()
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', end).on('SIGINT', end).on('SIGHUP', end)
}
