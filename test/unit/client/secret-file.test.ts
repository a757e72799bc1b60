/** The file in which a worker keeps its registration (`secretFile`). */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { connectInstance, createTaskClient, instanceTool } from '../../../src/client/index.js'
import { openSecretFile } from '../../../src/client/secret-file.js'
import { startTestServer, taskOf } from '../server/test-server.js'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'agent-tasks-secret-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

const REGISTRATION = { instanceId: 'w', secret: 'kept' }

function withFile(text: string = JSON.stringify(REGISTRATION), mode = 0o600): string {
  const file = join(folder(), 'w.json')
  writeFileSync(file, text)
  chmodSync(file, mode)
  return file
}

describe('the file', () => {
  it('is written for its owner alone, with its folder, and read again; a later registration replaces it', () => {
    const at = join(folder(), 'new')
    const file = join(at, 'w.json')
    const first = openSecretFile(file, 'w')
    expect(first.kept).toBeUndefined()
    first.keep(REGISTRATION)
    expect([statSync(file).mode & 0o777, statSync(at).mode & 0o777]).toEqual([0o600, 0o700])
    const second = openSecretFile(file, undefined)
    expect(second.kept).toEqual(REGISTRATION)
    second.keep({ ...REGISTRATION, secret: 'next' })
    expect(openSecretFile(file, 'w').kept).toEqual({ ...REGISTRATION, secret: 'next' })
    expect(readdirSync(at)).toEqual(['w.json'])
  })

  it.each([0o640, 0o604, 0o666])('is refused with the mode %i, and stays as it is', (mode) => {
    const file = withFile(undefined, mode)
    expect(() => openSecretFile(file, 'w')).toThrow(
      /^options\.secretFile: got ".*", expected a file that only its owner can read and write \(chmod 600\)\.$/,
    )
    expect(statSync(file).mode & 0o777).toBe(mode)
  })

  it.each(['', '{', '[]', '{"instanceId":"w"}', JSON.stringify({ ...REGISTRATION, more: 'x'.repeat(5000) })])(
    'is refused when it is damaged, and the error does not show it: %.30j',
    (text) => {
      const file = withFile(text)
      expect(() => openSecretFile(file, 'w')).toThrow(
        /^options\.secretFile: got ".*", expected a file that connectInstance has written\. Delete it to register anew\.$/,
      )
      expect(readFileSync(file, 'utf8')).toBe(text)
    },
  )

  it('is refused when it is a link, a folder, or that of another instance', () => {
    const file = withFile()
    const link = join(folder(), 'link')
    symlinkSync(file, link)
    expect(() => openSecretFile(link, 'w')).toThrow('expected a file, not a symbolic link')
    const at = join(folder(), 'folder')
    mkdirSync(at)
    expect(() => openSecretFile(at, 'w')).toThrow('expected a regular file')
    expect(() => openSecretFile(file, 'other')).toThrow(
      'expected the file of instance other, but the file belongs to w.',
    )
  })

  it('is refused when it cannot be written', () => {
    const file = withFile()
    const below = openSecretFile(join(folder(), 'x'), 'w')
    vi.spyOn(process, 'pid', 'get').mockImplementation(() => {
      throw Object.assign(new Error('full'), { code: 'ENOSPC' })
    })
    onTestFinished(() => void vi.restoreAllMocks())
    expect(() => below.keep(REGISTRATION)).toThrow(/^options\.secretFile: .* this process can write \(ENOSPC\)\.$/)
    // Nothing has changed, so nothing is written.
    openSecretFile(file, 'w').keep(REGISTRATION)
  })
})

describe('a worker with a secretFile', () => {
  const look = instanceTool({ name: 'look', execute: () => 'seen' })

  it('keeps the id that the server gave it from one start to the next', async () => {
    const server = await startTestServer({ instances: [] })
    const secretFile = join(folder(), 'w.json')
    const connect = () => connectInstance(server.httpUrl, { tools: [look], secretFile })
    const first = await connect()
    const { instanceId } = first
    // The second start takes over from a connection that the server still has.
    const second = await connect()
    onTestFinished(() => second.close())
    expect(await first.closed).toMatchObject({ code: 'TAKEN_OVER' })
    expect(second.instanceId).toBe(instanceId)
    const { body } = await server.post('/tasks', taskOf('look'))
    await expect
      .poll(async () => (await server.call(`/tasks/${String(body['taskId'])}`)).body['task'])
      .toMatchObject({ status: 'completed', instanceId })
  })

  it('registers anew, with its id, when the server does not know it any more', async () => {
    const server = await startTestServer({ instances: [] })
    const secretFile = withFile()
    const worker = await connectInstance(server.httpUrl, { tools: [look], secretFile })
    onTestFinished(() => worker.close())
    expect(worker.instanceId).toBe('w')
    expect(readFileSync(secretFile, 'utf8')).not.toContain('"kept"')
  })

  it('is refused without a token, as a client is, and the error names the option', async () => {
    const { httpUrl } = await startTestServer({ instances: [], auth: { tokens: ['a-token-of-the-server'] } })
    const refusal = {
      code: 'UNAUTHORIZED',
      message: expect.stringMatching(/Pass a token of the server: the option `token`/) as string,
    }
    for (const wrong of [{}, { token: 'wrong' }]) {
      await expect(connectInstance(httpUrl, { tools: [look], ...wrong })).rejects.toMatchObject(refusal)
      const client = createTaskClient({ url: httpUrl, ...wrong })
      await expect(client.list()).rejects.toMatchObject(refusal)
      await client.close()
    }
  })

  it('is not registered with a file that is refused', async () => {
    const server = await startTestServer({ instances: [] })
    const secretFile = withFile(undefined, 0o644)
    await expect(connectInstance(server.httpUrl, { tools: [look], id: 'w', secretFile })).rejects.toThrow(
      /^options\.secretFile: .*\(chmod 600\)/,
    )
    await expect(connectInstance(server.httpUrl, { tools: [look], secretFile: '' })).rejects.toThrow(
      'options.secretFile',
    )
    expect(server.instances.list()).toEqual([])
  })
})
