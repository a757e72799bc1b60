/** A scripted session: an agent gives work to another one, which speaks ACP and asks before it edits a file. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createAgentTasks } from 'agent-tasks'
import { acpRunner } from 'agent-tasks/acp'

// In your host this is the command line of a coding agent. Here it is a small agent, written with the SDK of the protocol.
const sdk = pathToFileURL(createRequire(import.meta.url).resolve('@agentclientprotocol/sdk')).href
const coder = `
import { Readable, Writable } from 'node:stream'
import { agent, methods, ndJsonStream } from '${sdk}'
const { client, agent: ours } = methods
const sessionId = 'session-7'
let cwd
agent({ name: 'coder' })
  .onRequest(ours.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest(ours.session.new, ({ params }) => ((cwd = params.cwd), { sessionId }))
  .onRequest(ours.session.prompt, async ({ client: host }) => {
    const update = (fields) => host.notify(client.session.update, { sessionId, update: fields })
    const plan = (status) => ({ content: 'Write the notes', priority: 'high', status })
    await update({ sessionUpdate: 'plan', entries: [plan('in_progress')] })
    const { outcome } = await host.request(client.session.requestPermission, {
      sessionId,
      toolCall: { toolCallId: 'edit-1', title: 'Write notes.md', kind: 'edit' },
      options: [
        { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
        { optionId: 'no', name: 'Reject', kind: 'reject_once' },
      ],
    })
    const isAllowed = outcome.optionId === 'yes'
    if (isAllowed) await host.request(client.fs.writeTextFile, { sessionId, path: cwd + '/notes.md', content: 'ready' })
    await update({ sessionUpdate: 'plan', entries: [plan('completed')] })
    const text = isAllowed ? 'I have written notes.md.' : 'I may not write notes.md.'
    await update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
    return { stopReason: 'end_turn' }
  })
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)))
`

const folder = mkdtempSync(join(tmpdir(), 'acp-session-'))
const tasks = createAgentTasks({
  subagents: {
    coder: acpRunner({
      command: process.execPath,
      args: ['--input-type=module', '--eval', coder],
      cwd: folder,
      permissions: { read: 'allow', default: 'ask' },
    }),
  },
})

const handle = tasks.launch('coder', 'Write down that we are ready.')
for await (const event of handle) {
  if (event.type === 'progress') console.log(`--- progress\n${event.progress.progress} of ${event.progress.total}\n`)
  if (event.type === 'question') {
    console.log(`--- a person reads\n${event.question.message}\n`)
    assert.equal(event.question.message, 'coder asks for permission to use a tool (edit): Write notes.md')
    handle.answer(event.question.id, 'Allow')
  }
}
const output = await handle.result
console.log(`--- the agent reads\n${output.final_message}`)
assert.deepEqual(output, { final_message: 'I have written notes.md.', session_id: 'session-7' })
assert.equal(readFileSync(join(folder, 'notes.md'), 'utf8'), 'ready')
await tasks.dispose()
rmSync(folder, { recursive: true })
