/** The plugin of opencode. It runs inside opencode, and reaches the server as other clients do, with `agent-tasks hook`. */
import { SESSION_ARGUMENT } from './session-argument.js'

/**
 * Makes the text of the plugin.
 * @param command the program and arguments that run `agent-tasks`
 * @param server the name of the MCP server in the configuration of opencode
 */
export const opencodePlugin = (command: readonly string[], server: string): string => `${PLUGIN_MARK}
import { spawn } from 'node:child_process'

const [program, ...args] = ${JSON.stringify(command)}
const server = ${JSON.stringify(server)}

/** Calls a hook. Resolves to the text for the model, if there is one. */
const hook = (event, input) =>
  new Promise((resolve) => {
    const child = spawn(program, [...args, 'hook', event, '--client', 'opencode'], { stdio: ['pipe', 'pipe', 'ignore'] })
    let printed = ''
    child.stdout.on('data', (chunk) => (printed += chunk))
    child.stdin.on('error', () => undefined)
    child.on('error', () => resolve(undefined))
    child.on('close', () => {
      try {
        resolve(JSON.parse(printed).text)
      } catch {
        resolve(undefined)
      }
    })
    child.stdin.end(JSON.stringify(input))
  })

export const AgentTasks = async ({ client }) => {
  const isHeadless = process.argv[2] === 'run'
  const prompt = async (id, text) => {
    if (text !== undefined) await client.session.promptAsync({ path: { id }, body: { parts: [{ type: 'text', text }] } })
  }
  return {
    // opencode makes the message when this returns. One that is made later than the end of the turn is not sent by \`opencode run\`.
    'chat.message': async ({ sessionID }, { parts }) => {
      const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\\n')
      void hook('prompt', { session_id: sessionID, prompt: text })
    },
    'tool.execute.before': async ({ tool, sessionID }, output) => {
      if (tool.startsWith(server + '_')) output.args.${SESSION_ARGUMENT} = sessionID
    },
    // At session.idle, \`opencode run\` has ended already.
    'experimental.text.complete': async ({ sessionID }) => {
      if (isHeadless) await prompt(sessionID, await hook('stop', { session_id: sessionID }))
    },
    event: async ({ event }) => {
      if (isHeadless || event.type !== 'session.idle') return
      const { sessionID } = event.properties
      void hook('wake', { session_id: sessionID }).then((text) => prompt(sessionID, text))
    },
  }
}
`

/** The first line, by which the plugin is recognised. */
export const PLUGIN_MARK = '// Written by `agent-tasks hooks --client opencode`, which also removes it (--remove).'
