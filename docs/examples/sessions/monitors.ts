/** A scripted session: an agent starts a server, is woken when it listens, is woken again by an error in its log, and ends the monitors. */
import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgentTasks, runCommandLine } from 'agent-tasks'

const logs = mkdtempSync(join(tmpdir(), 'agent-tasks-logs-'))
const log = join(logs, 'server.log')
writeFileSync(log, '')
const script = `console.log('starting'); setTimeout(() => console.log('listening on 8080'), 100); setTimeout(() => {}, 60_000)`

let wake: (message: string) => void = () => undefined
const tasks = createAgentTasks({
  commands: { allow: [process.execPath] },
  monitors: { files: [logs] },
  isAgentBusy: () => false,
  triggerAgentTurn: (message) => {
    wake(message)
    return Promise.resolve(true)
  },
  autoTrigger: { coalesceMs: 0 },
})
const { monitor } = tasks.tools
const woken = () => new Promise<string>((resolve) => (wake = resolve))

const listening = woken()
const server = await monitor.execute({
  command: process.execPath,
  args: ['-e', script],
  match: 'listening on',
  description: 'server is up',
})
say('the agent reads', server.llmContent)
const up = await listening
say('the agent is woken', up)
assert.match(up, /\(server is up\), task .*: 1 matching line\(s\)\..*listening on 8080/)

const failing = woken()
await monitor.execute({
  file: 'server.log',
  regex: '\\b(error|fatal)\\b',
  flags: 'i',
  description: 'errors of the server',
})
appendFileSync(log, 'GET / 200\nERROR: no connection to the database\n')
const error = await failing
say('the agent is woken', error)
assert.match(error, /ERROR: no connection to the database/)
assert.doesNotMatch(error, /GET/)

const list = runCommandLine(tasks.commands, '/monitors')?.text ?? ''
say('a person reads', list)
assert.match(list, /task node-.* - server is up\n.*file server\.log, 1 event\(s\), .* - errors of the server/)

const cancelled = woken()
const [, ofLog] = tasks.monitors()
say('a person cancels one', runCommandLine(tasks.commands, `/monitor cancel ${ofLog?.id}`)?.text ?? '')
const end = await cancelled
say('the agent is woken', end)
assert.match(end, /The monitor has ended: it was cancelled: by the user\./)

const ended = await monitor.execute({ action: 'cancel', monitor_id: String(server.metadata?.['id']) })
say('the agent reads', ended.llmContent)
assert.equal(tasks.manager.getRunningTasks().length, 0)
await tasks.dispose()
rmSync(logs, { recursive: true })

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
