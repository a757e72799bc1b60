import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runHookCommand } from '../../../../src/features/hooks/hook-command.js'
import { findServer, readServerFiles, type HookServerFile } from '../../../../src/features/hooks/hook-folder.js'
import { openHookServer, type HookServer, type HookServerOptions } from '../../../../src/features/hooks/hook-server.js'
import { identityOf } from '../../../../src/system/process-identity.js'
import { createManualClock } from '../../../../src/testing/index.js'

const own = identityOf(process.pid)
if (own === undefined) throw new Error('this process has no identity')
const parent = identityOf(process.ppid) ?? own

let home: string
let folder: string
let servers: HookServer[]
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'hooks-'))
  folder = join(home, 'hooks')
  servers = []
})
afterEach(() => {
  for (const server of servers) server.close()
  rmSync(home, { recursive: true, force: true })
})

type Answer = HookServerOptions['answer']

async function open(answer: Answer, described: Partial<HookServerFile> = {}, clock = createManualClock(0)) {
  const server = await openHookServer({
    folder,
    clock,
    describe: () => ({
      client: 'gemini',
      server: own as never,
      clientProcess: parent,
      sessionIds: ['one'],
      ...described,
    }),
    answer,
  })
  servers.push(server)
  return server
}

const echo: Answer = (event, input) =>
  Promise.resolve({ output: { stdout: JSON.stringify({ event, input }) }, end: () => undefined })

const hook = (event: string, input: object, client = 'gemini') =>
  runHookCommand([event, '--client', client], { folder, readText: () => JSON.stringify(input) })

const fileIn = (): HookServerFile => {
  const [found] = readServerFiles(folder)
  if (found === undefined) throw new Error('there is no file')
  return found[1]
}

/** Writes a text to the socket, and returns what comes back until it closes. */
function send(text: string): Promise<string> {
  return new Promise((resolve) => {
    let received = ''
    const socket = connect(fileIn().socket, () => socket.write(text))
    socket.setEncoding('utf8')
    socket.on('error', () => undefined)
    socket.on('data', (chunk: string) => (received += chunk))
    socket.on('close', () => resolve(received))
  })
}

describe('the socket', () => {
  it('answers a hook command', async () => {
    await open(echo)
    const { stdout } = await hook('stop', { session_id: 'one', stop_hook_active: true, secret: 'not sent' })
    expect(JSON.parse(stdout)).toEqual({ event: 'stop', input: { session_id: 'one', stop_hook_active: true } })
  })

  it('passes on standard error and the exit code', async () => {
    const output = { stdout: '', stderr: 'text', exitCode: 2 }
    await open(() => Promise.resolve({ output, end: () => undefined }))
    expect(await hook('wake', { session_id: 'one' })).toEqual(output)
  })

  it('is in a folder that only the user can enter, and its file only the user can read', async () => {
    await open(echo)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    const [json = ''] = readdirSync(folder).filter((name) => name.endsWith('.json'))
    expect(statSync(join(folder, json)).mode & 0o777).toBe(0o600)
  })

  it('leaves nothing behind, and removes what a killed server has left', async () => {
    const killed = { pid: 2 ** 22 - 1, start: '1', boot: own.boot }
    const left = await open(echo, { server: killed })
    left.update()
    expect(readdirSync(folder)).toHaveLength(2)
    const server = await open(echo)
    expect(readServerFiles(folder).map(([, file]) => file.server.pid)).toEqual([process.pid])
    server.close()
    expect(readdirSync(folder)).toEqual([])
  })

  it('answers nothing without the token, to other JSON and to no JSON', async () => {
    await open(echo)
    const { token } = fileIn()
    const call = { token, client: 'gemini', event: 'stop', input: {} }
    expect(await send(`${JSON.stringify(call)}\n`)).toContain('stop')
    for (const wrong of [{ ...call, token: 'guessed' }, { ...call, event: 'other' }, { token }, [], 'text']) {
      expect(await send(`${JSON.stringify(wrong)}\n`)).toBe('{"stdout":"{}"}\n')
    }
    expect(await send('no JSON\n')).toBe('{"stdout":"{}"}\n')
  })

  it('closes a connection with a line of more than 64 KiB, and one that sends no line in 5 s', async () => {
    const clock = createManualClock(0)
    await open(echo, {}, clock)
    expect(await send('x'.repeat(70_000))).toBe('')
    const slow = send('{')
    await expect.poll(() => clock.pending).toBe(1)
    clock.advance(5000)
    expect(await slow).toBe('')
    expect(clock.pending).toBe(0)
  })

  it('has at most 16 connections', async () => {
    const waiting: (() => void)[] = []
    await open(
      (event) =>
        new Promise((resolve) => waiting.push(() => resolve({ output: { stdout: event }, end: () => undefined }))),
    )
    const calls = Array.from({ length: 16 }, () => hook('stop', { session_id: 'one' }))
    await expect.poll(() => waiting.length).toBe(16)
    expect(await hook('stop', { session_id: 'one' })).toEqual({ stdout: '{}' })
    for (const answer of waiting) answer()
    expect((await Promise.all(calls)).map(({ stdout }) => stdout)).toEqual(Array.from({ length: 16 }, () => 'stop'))
  })

  it('closes a connection that has had its answer for 5 s', async () => {
    const clock = createManualClock(0)
    const ends: boolean[] = []
    await open((event) => Promise.resolve({ output: { stdout: event }, end: (is) => ends.push(is) }), {}, clock)
    const { token, socket: path } = fileIn()
    const request = JSON.stringify({ token, client: 'gemini', event: 'stop', input: {} })
    const call = connect({ path, allowHalfOpen: true }, () => call.write(`${request}\n`))
    call.resume()
    await new Promise((resolve) => call.once('end', resolve))
    expect(ends).toEqual([])
    clock.advance(5000)
    await expect.poll(() => ends).toEqual([true])
    expect(clock.pending).toBe(0)
    call.destroy()
  })

  it('says whether the answer was written, and takes a call back whose command has ended', async () => {
    const ends: boolean[] = []
    let signal: AbortSignal | undefined
    await open(
      (_event, _input, aborts) =>
        new Promise((resolve) => {
          signal = aborts
          aborts.addEventListener('abort', () => resolve({ output: { stdout: '' }, end: (is) => ends.push(is) }))
        }),
    )
    const { token, socket } = fileIn()
    const call = connect(socket, () =>
      call.write(`${JSON.stringify({ token, client: 'gemini', event: 'stop', input: {} })}\n`),
    )
    await expect.poll(() => signal).toBeDefined()
    call.destroy()
    await expect.poll(() => ends).toEqual([false])
    servers.pop()?.close()
    await open((event) => Promise.resolve({ output: { stdout: event }, end: (is) => ends.push(is) }))
    await hook('stop', { session_id: 'one' })
    await expect.poll(() => ends).toEqual([false, true])
  })

  it('is not opened in a folder that is a link, or in a path that is too long', async () => {
    mkdirSync(join(home, 'other'))
    symlinkSync(join(home, 'other'), folder)
    await expect(open(echo)).rejects.toThrow('expected a folder, and no symbolic link')
    rmSync(folder)
    folder = join(home, 'x'.repeat(100))
    await expect(open(echo)).rejects.toThrow('expected at most 103')
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('a hook command', () => {
  it('prints {} without a server, for another client, and when the server ends meanwhile', async () => {
    expect(await hook('stop', { session_id: 'one' })).toEqual({ stdout: '{}' })
    const server = await open(() => new Promise(() => undefined))
    expect(await hook('stop', { session_id: 'one' }, 'qwen')).toEqual({ stdout: '{}' })
    const waiting = hook('stop', { session_id: 'one' })
    await new Promise((resolve) => setTimeout(resolve, 50))
    server.close()
    expect(await waiting).toEqual({ stdout: '{}' })
  })

  it('prints {} for input that is no JSON', async () => {
    await open(echo, { sessionIds: [] })
    expect(await runHookCommand(['stop', '--client', 'gemini'], { folder, readText: () => '{' })).toMatchObject({})
  })

  it('reads no file that others can read', async () => {
    await open(echo)
    const [json = ''] = readdirSync(folder).filter((name) => name.endsWith('.json'))
    chmodSync(join(folder, json), 0o644)
    expect(await hook('stop', { session_id: 'one' })).toEqual({ stdout: '{}' })
    writeFileSync(join(folder, 'damaged.json'), '{', { mode: 0o600 })
    expect(existsSync(folder)).toBe(true)
  })

  it('sends the end of a long prompt, which has the delivery id of a message', async () => {
    await open(echo)
    const { stdout } = await hook('prompt', { session_id: 'one', prompt: `${'x'.repeat(100_000)} Delivery ID: d` })
    expect(stdout).toContain('Delivery ID: d')
    expect(stdout.length).toBeLessThan(10_000)
  })
})

describe('the server of a hook command', () => {
  const file = (fields: Partial<HookServerFile>): HookServerFile => ({
    socket: '',
    token: '',
    client: 'gemini',
    server: own,
    clientProcess: parent,
    sessionIds: [],
    ...fields,
  })
  const caller = { client: 'gemini', sessionId: 'one', taskId: undefined, mayBegin: false, ancestors: [parent.pid] }

  it('is the one that knows the conversation', () => {
    const known = file({ sessionIds: ['one'] })
    expect(findServer([file({ sessionIds: ['two'] }), known], caller)).toBe(known)
  })

  it('is that of the nearest process, if none knows the conversation yet', () => {
    const near = file({})
    const far = file({ clientProcess: { ...parent, pid: 1 } })
    expect(findServer([far, near], caller)).toBe(near)
  })

  it('is none, if the conversation is known and is another one, unless a conversation begins', () => {
    const other = file({ sessionIds: ['two'] })
    expect(findServer([other], caller)).toBeUndefined()
    expect(findServer([other], { ...caller, mayBegin: true })).toBe(other)
  })

  it('is none inside another run, and none above another server', () => {
    expect(findServer([file({ sessionIds: ['one'] })], { ...caller, taskId: 'inner' })).toBeUndefined()
    const inner = file({ taskId: 'inner', sessionIds: ['one'] })
    expect(findServer([inner], { ...caller, taskId: 'inner' })).toBe(inner)
    expect(findServer([file({})], { ...caller, ancestors: [own.pid, parent.pid] })).toBeUndefined()
  })

  it('is none above a client that has no server', () => {
    const outer = file({ sessionIds: ['two'] })
    const inner = { ...caller, mayBegin: true, ancestors: [77, parent.pid] }
    expect(findServer([outer], { ...inner, isClient: (pid) => pid === 77 })).toBeUndefined()
    expect(findServer([outer], { ...inner, isClient: (pid) => pid === parent.pid })).toBe(outer)
  })

  it('is found with as many ids as it remembers', async () => {
    await open(echo, { sessionIds: Array.from({ length: 100 }, (_, n) => `${n}`.padStart(200, '\u0001')) })
    expect(fileIn().sessionIds).toHaveLength(100)
  })

  it('is none that has ended, and none whose client has ended', () => {
    const ended = { ...own, start: '1' }
    expect(findServer([file({ server: ended, sessionIds: ['one'] })], caller)).toBeUndefined()
    expect(findServer([file({ clientProcess: { ...parent, start: '1' } })], caller)).toBeUndefined()
  })
})
