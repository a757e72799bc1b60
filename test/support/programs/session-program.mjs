/**
 * Prints what the command line of an agent would print. Its first argument says which agent, and the rest are the arguments of that agent. Its sessions
 * are files in the working directory.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

const [agent, ...args] = process.argv.slice(2)
const valueOf = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined)
const afterDashes = () => args.slice(args.indexOf('--') + 1)
const line = (value) => process.stdout.write(`${JSON.stringify(value)}\n`)

/** The conversation of a session, in which the program finds its earlier messages. */
function converse(session, message, isResumed) {
  const file = `session-${session}`
  if (isResumed !== existsSync(file)) {
    process.stderr.write(`No conversation found with session ID: ${session}\n`)
    process.exit(1)
  }
  appendFileSync(file, `${message}\n`)
  return readFileSync(file, 'utf8').trim().split('\n').join(' | ')
}

const agents = {
  claude: () => {
    const expected = ['-p', '--output-format', 'stream-json', '--verbose']
    if (expected.some((argument) => !args.includes(argument))) process.exit(2)
    const resumed = valueOf('--resume')
    const session = resumed ?? '3f0c1d2e-0000-4000-8000-00000000abcd'
    line({ type: 'system', subtype: 'init', session_id: session, tools: ['Bash'] })
    const result = converse(session, afterDashes()[0], resumed !== undefined)
    line({ type: 'assistant', message: { content: [{ type: 'text', text: 'working' }] }, session_id: session })
    line({ type: 'result', subtype: 'success', is_error: false, result, session_id: session })
  },
  codex: () => {
    if (args[0] !== 'exec' || args[1] !== '--json') process.exit(2)
    const resumed = args.slice(0, args.indexOf('--')).includes('resume') ? valueOf('resume') : undefined
    const isResumed = resumed !== undefined
    const thread = resumed ?? '0199a213-81c0-7800-8aa1-bbab2a035a53'
    line({ type: 'thread.started', thread_id: thread })
    line({ type: 'turn.started' })
    line({ type: 'item.completed', item: { id: 'item_0', type: 'reasoning', text: '**Thinking**' } })
    const text = converse(thread, afterDashes()[0], isResumed)
    line({ type: 'item.completed', item: { id: 'item_1', type: 'command_execution', command: 'ls', exit_code: 0 } })
    line({ type: 'item.completed', item: { id: 'item_2', type: 'agent_message', text } })
    line({ type: 'turn.completed', usage: { input_tokens: 1, output_tokens: 1 } })
  },
  gemini: () => {
    if (valueOf('--output-format') !== 'stream-json') process.exit(2)
    const resumed = valueOf('--resume')
    const session = resumed ?? 'a1b2c3d4-e5f6-7890-abcd-ef1234567890'
    const prompt = args.find((argument) => argument.startsWith('--prompt='))?.slice('--prompt='.length)
    line({ type: 'init', session_id: session })
    line({ type: 'message', role: 'user', content: prompt })
    const response = converse(session, prompt, resumed !== undefined)
    for (const content of [response.slice(0, 3), response.slice(3)]) {
      line({ type: 'message', role: 'assistant', content, delta: true })
    }
    line({ type: 'result', status: 'success', stats: { input_tokens: 1, output_tokens: 1 } })
  },
  // Prints its arguments unchanged.
  prints: () => {
    for (const text of args) process.stdout.write(`${text}\n`)
  },
  fails: () => {
    agents.prints()
    process.exitCode = 3
  },
  hangs: () => {
    agents.prints()
    setInterval(() => undefined, 1000)
  },
}

agents[agent]()
