/** The command that wakes an idle client. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest'
import { codex } from '../../../../src/features/hooks/codex.js'
import { hasSocketClient, WAKE_MESSAGE, wakeIdle } from '../../../../src/features/hooks/idle-wake.js'
import { identityOf } from '../../../../src/system/process-identity.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'idle-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A process that plays the client, with a variable of its own. */
function startClient() {
  const child = spawn('sh', ['-c', 'read _'], { env: { PATH: process.env['PATH'], OWN: 'of the client' } })
  onTestFinished(async () => {
    process.kill(child.pid ?? 0, 'SIGKILL')
    await once(child, 'close')
  })
  return { args: ['codex'], identity: identityOf(child.pid ?? 0) }
}

/** Writes its variable and the arguments that it gets. */
const writer = () => ({
  ...codex,
  wakeArgs: (sessionId: string, message: string) => [
    ...['-c', 'printf "%s|" "$OWN" "$@" > "$0"'],
    ...[join(folder, 'written'), sessionId, message],
  ],
})

async function listen() {
  const server = createServer()
  server.listen(join(folder, 'socket'))
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return server
}

it('is run by the program of the client, with its environment, and has no result', async () => {
  expect(await wakeIdle(writer(), startClient(), 'one')).toBeUndefined()
  expect(readFileSync(join(folder, 'written'), 'utf8')).toBe(`of the client|one|${WAKE_MESSAGE}|`)
  expect(codex.wakeArgs?.('one', 'text')).toEqual(['queue', '--thread', 'one', '--message', 'text'])
})

it('says why it has failed', async () => {
  const failing = { ...codex, wakeArgs: () => ['-c', 'exit 3'] }
  expect(await wakeIdle(failing, startClient(), 'one')).toContain('Command failed')
  const gone = { args: ['codex'], identity: undefined }
  expect(await wakeIdle(codex, gone, 'one')).toBe('the client cannot be woken')
  // Another process has its pid now.
  const identity = { pid: process.pid, start: '1', boot: identityOf(process.pid)?.boot ?? '' }
  expect(await wakeIdle(codex, { args: ['codex'], identity }, 'one')).toBe('the client has ended')
})

it('is not run for a server of the client to which no terminal is connected', async () => {
  const server = await listen()
  const identity = identityOf(process.pid)
  const failing = { ...codex, wakeArgs: () => ['--no-such-option'] }
  const none = 'no terminal is connected to the client'
  expect(hasSocketClient(process.pid)).toBe(false)
  expect(await wakeIdle(failing, { args: ['codex', 'app-server'], identity }, 'one')).toBe(none)
  const terminal = connect(join(folder, 'socket'))
  const [accepted] = (await once(server, 'connection')) as [ReturnType<typeof connect>]
  expect(hasSocketClient(process.pid)).toBe(true)
  expect(await wakeIdle(failing, { args: ['codex', 'app-server'], identity }, 'one')).toContain('--no-such-option')
  terminal.destroy()
  await once(accepted.resume(), 'close')
  expect(hasSocketClient(process.pid)).toBe(false)
})

it('is unknown of a process that does not exist', () => {
  expect(hasSocketClient(2 ** 30)).toBe(false)
})
